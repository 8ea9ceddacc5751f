#include "cli/test_counts.h"

#include <cmath>

namespace samebytes::cli {
namespace {

constexpr std::size_t kFields = 3;  // of a batch: loss, right answers, samples

}  // namespace

TestCounts::TestCounts(const Workload& workload, const Ranks* ranks)
    : workload_(workload), ranks_(ranks != nullptr && ranks->test_batches() > 0 ? ranks : nullptr) {}

void TestCounts::add(const std::vector<Array>& results, std::int64_t samples) {
  const Array right = results.size() > 1 ? results[1] : Array();
  if (ranks_ != nullptr) {
    eval(right.defined() ? std::vector<Array>{results[0], right}
                         : std::vector<Array>{results[0]});  // the batch is given back
    parts_.push_back({results[0], right, samples});
  } else {
    loss_.add(results[0], static_cast<double>(samples));
    if (right.defined()) right_.add_sum(right, static_cast<double>(samples));
  }
  if (results.size() > 2 && workload_.is_binary)
    for (const float score : results[2].to_vector<float>()) scores_.push_back(score);
}

void TestCounts::add_labels(const data::Batch& batch) {
  if (!workload_.is_binary || workload_.whole_loss) return;
  for (const float label : batch["label"].to_vector<float>()) truth_.push_back(label);
}

// Sums to which one rank alone adds more than zeros: what it has, on all ranks.
void TestCounts::collect() {
  const auto batches = static_cast<std::size_t>(ranks_->test_batches());
  const auto number = [&](std::size_t own) {
    return own * static_cast<std::size_t>(ranks_->size()) + static_cast<std::size_t>(ranks_->rank());
  };
  std::vector<double> table(kFields * batches);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    double* const row = &table[kFields * number(i)];
    row[0] = parts_[i].loss.value();
    row[1] = parts_[i].right.defined() ? parts_[i].right.value() : NAN;
    row[2] = static_cast<double>(parts_[i].samples);
  }
  ranks_->all_reduce(table);
  std::vector<std::size_t> begins(batches + 1);  // of each batch's samples
  for (std::size_t b = 0; b < batches; ++b) {
    const double* const row = &table[kFields * b];
    loss_.add_value(row[0], row[2]);
    right_answers_ += row[1];
    begins[b + 1] = begins[b] + static_cast<std::size_t>(row[2]);
  }
  if (!workload_.is_binary || workload_.whole_loss) return;
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

Evaluation TestCounts::total() {
  if (ranks_ != nullptr) collect();
  Evaluation result{.loss = loss_.value()};
  if (workload_.right) result.accuracy = ranks_ != nullptr ? right_answers_ / loss_.weight() : right_.value();
  if (workload_.is_binary) {
    result.balanced_accuracy = balanced_accuracy(scores_, truth_);
    result.area_under_curve = area_under_curve(scores_, truth_);
  }
  return result;
}

}  // namespace samebytes::cli
