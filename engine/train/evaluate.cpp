#include "samebytes/train/evaluate.h"

#include <cmath>

#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "samebytes/train.h"

namespace samebytes::train {
namespace {

// What a validation adds up, batch by batch. Where ranks share it, each counts its own batches; the total is made of
// all of them in the order of one process, and so are its figures.
class Counts {
 public:
  Counts(const Task& task, const Strategy* ranks)
      : task_(task),
        ranks_(ranks != nullptr && ranks->validation_batches() > 0 ? ranks : nullptr),
        sums_(task.whole_loss ? 0 : task.metrics.size()),
        totals_(sums_.size()) {}

  // The loss, the sum of each metric and, of a binary task, the output.
  std::vector<Array> results_of(nn::Module& net, const data::Batch& batch) const {
    if (task_.whole_loss) return {task_.whole_loss(net, batch)};
    const Array output = task_.forward(net, batch);  // kept, so that one pass makes it for all of them
    std::vector<Array> results = {task_.loss(output, batch)};
    for (const Metric& metric : task_.metrics) results.push_back(metric.sum(output, batch));
    results.push_back(output);
    return results;
  }

  void add(const std::vector<Array>& results, std::int64_t samples) {
    if (ranks_ != nullptr) {
      parts_.push_back({std::vector<Array>(results.begin(), results.begin() + 1 + metric_count()), samples});
      eval(parts_.back().results);  // the batch is given back
    } else {
      loss_.add(results[0], static_cast<double>(samples));
      for (std::size_t m = 0; m < sums_.size(); ++m) sums_[m].add_sum(results[1 + m], static_cast<double>(samples));
    }
    if (has_scores())
      for (const float score : results.back().to_vector<float>()) scores_.push_back(score);
  }

  void add_labels(const data::Batch& batch) {
    if (!has_scores()) return;
    for (const float label : batch["label"].to_vector<float>()) truth_.push_back(label);
  }

  // Every rank calls it.
  Evaluation total() {
    if (ranks_ != nullptr) collect();
    Evaluation result{.loss = loss_.value()};
    for (std::size_t m = 0; m < sums_.size(); ++m)
      result.metrics.emplace_back(task_.metrics[m].name,
                                  ranks_ != nullptr ? totals_[m] / loss_.weight() : sums_[m].value());
    if (task_.is_binary) {
      result.metrics.emplace_back("balanced_accuracy", balanced_accuracy(scores_, truth_));
      result.metrics.emplace_back("area_under_curve", area_under_curve(scores_, truth_));
    }
    return result;
  }

 private:
  struct Part {
    std::vector<Array> results;
    std::int64_t samples;
  };
  bool has_scores() const { return task_.is_binary && !task_.whole_loss; }
  std::ptrdiff_t metric_count() const { return static_cast<std::ptrdiff_t>(sums_.size()); }

  // Sums to which one rank alone adds more than zeros: what it has, on all ranks.
  void collect() {
    const auto batches = static_cast<std::size_t>(ranks_->validation_batches());
    const std::size_t fields = 2 + sums_.size();  // of a batch: samples, loss, metrics
    const auto number = [&](std::size_t own) {
      return own * static_cast<std::size_t>(ranks_->size()) + static_cast<std::size_t>(ranks_->rank());
    };
    std::vector<double> table(fields * batches);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      double* const row = &table[fields * number(i)];
      row[0] = static_cast<double>(parts_[i].samples);
      for (std::size_t r = 0; r < parts_[i].results.size(); ++r) row[1 + r] = parts_[i].results[r].value();
    }
    ranks_->all_reduce(table);
    std::vector<std::size_t> begins(batches + 1);  // of each batch's samples
    for (std::size_t b = 0; b < batches; ++b) {
      const double* const row = &table[fields * b];
      loss_.add_value(row[1], row[0]);
      for (std::size_t m = 0; m < totals_.size(); ++m) totals_[m] += row[2 + m];
      begins[b + 1] = begins[b] + static_cast<std::size_t>(row[0]);
    }
    if (has_scores()) collect_scores(begins, number);
  }

  template <class Number>
  void collect_scores(const std::vector<std::size_t>& begins, const Number& number) {
    const std::size_t samples = begins.back();
    std::vector<double> all(2 * samples);  // scores, then truth
    std::size_t next = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i)
      for (std::size_t place = begins[number(i)]; place < begins[number(i) + 1]; ++place, ++next) {
        all[place] = static_cast<double>(scores_[next]);
        all[samples + place] = static_cast<double>(truth_[next]);
      }
    ranks_->all_reduce(all);
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(samples);
    scores_.assign(all.begin(), middle);
    truth_.assign(middle, all.end());
  }

  const Task& task_;
  const Strategy* ranks_;    // null: the validation is not shared out
  std::vector<Part> parts_;  // where it is: of each batch of this rank
  Mean loss_;
  std::vector<Mean> sums_;      // of each metric
  std::vector<double> totals_;  // ... of all ranks
  std::vector<float> scores_, truth_;
};

// Evaluation mode, and back.
class InEvaluation {
 public:
  explicit InEvaluation(nn::Module& net) : net_(net), was_training_(net.is_training()) { net.eval(); }
  ~InEvaluation() { net_.train(was_training_); }
  InEvaluation(const InEvaluation&) = delete;
  InEvaluation& operator=(const InEvaluation&) = delete;

 private:
  nn::Module& net_;
  bool was_training_;
};

}  // namespace

Metric accuracy(std::size_t label) {
  return {"accuracy", [label](const Array& logits, const data::Batch& batch) {
            return sum(astype(equal(argmax(logits), batch[label]), f32));
          }};
}

std::optional<double> Evaluation::find(std::string_view name) const {
  if (name == "loss") return loss;
  for (const auto& [metric, value] : metrics)
    if (metric == name) return value;
  return {};
}

std::optional<Evaluation> evaluate(const Task& task, nn::Module& net, data::Loader& batches,
                                   const EvaluateOptions& options) {
  if (!task.loss && !task.whole_loss) throw ArgumentError("evaluate: expected a task with a loss, got none");
  const NoGrad no_grad;
  const InEvaluation mode(net);
  Strategy* const ranks = options.shared;
  if (ranks != nullptr) ranks->share_buffers(net);
  const auto is_asked = [&] { return options.should_stop && options.should_stop(); };
  Counts counts(task, ranks);
  batches.reset_stats();
  if (options.meter != nullptr) options.meter->begin();
  std::int64_t left =
      ranks != nullptr && ranks->validation_batches() > 0 ? ranks->own_validation_batches() : options.batches;
  const auto results_of = [&](const data::Batch& batch) { return counts.results_of(net, batch); };
  const auto count = [&](const data::Batch& batch) {
    if (options.shared != nullptr)
      for (const auto& part :
           options.shared->parallel().map(batch.samples(), [&](std::int64_t begin, std::int64_t end) {
             return results_of(end - begin == batch.samples() ? batch : batch.piece(begin, end));
           }))
        counts.add(part.results, part.end - part.begin);
    else
      counts.add(results_of(batch), batch.samples());
    counts.add_labels(batch);
    if (options.meter != nullptr) options.meter->step(batch.samples());
    return --left > 0 && !is_asked();
  };
  if (left > 0)
    for (const data::Batch& batch : batches)
      if (!count(batch)) break;
  if (options.meter != nullptr) options.meter->end(batches.stats().loop_wait_seconds);
  if (ranks != nullptr ? ranks->agree_to_stop(is_asked()) : is_asked()) return {};
  return counts.total();
}

}  // namespace samebytes::train
