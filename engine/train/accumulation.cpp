#include "samebytes/train/accumulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::train {

Accumulation::Accumulation(const AccumulationOptions& options, Precision& precision, optim::Optimizer& optimizer,
                           Strategy* shared)
    : options_(options), precision_(precision), optimizer_(optimizer), shared_(shared) {
  if (options.batches < 1)
    throw ArgumentError(fmt::format("accumulation: expected 1 batch or more an update, got {}", options.batches));
  if (options.micro_batch < 0)
    throw ArgumentError(
        fmt::format("accumulation: expected a micro-batch of 0 samples (all) or more, got {}", options.micro_batch));
  if (shared_ == nullptr && (options.batches > 1 || options.micro_batch > 0)) accumulator_.emplace(optimizer);
}

Array Accumulation::make(const Strategy::Share& piece, const LossOf& loss_of, bool is_last) {
  const data::Batch& batch = piece.batch;
  if (shared_ != nullptr) {
    const DataParallel::LossOf loss_of_part = [&](std::int64_t begin, std::int64_t end) {
      return loss_of(end - begin == batch.samples() ? batch : batch.piece(begin, end));
    };
    DataParallel& parallel = shared_->parallel();
    return is_last ? parallel.step(optimizer_, piece.share(), loss_of_part, precision_.scaler())
                   : parallel.add(optimizer_, piece.share(), loss_of_part, precision_.scaler());
  }
  Array loss = loss_of(batch);
  const auto weight = static_cast<double>(piece.samples);
  if (!is_last)
    accumulator_->add(precision_.scaled(loss), weight);
  else if (accumulator_)
    precision_.step(*accumulator_, loss, weight);
  else
    precision_.step(optimizer_, loss);
  return loss;
}

// The third piece and the ones after it, but for the last, have the plan of the second: of what they hold there is the
// loss.
void Accumulation::add_like_the_last(std::int64_t samples) {
  const Array loss = zeros(pieces_.back().loss.shape(), pieces_.back().loss.dtype());
  loss.eval();
  pieces_.push_back({loss, samples});
}

std::optional<Accumulation::Step> Accumulation::add(const data::Batch& whole, const LossOf& loss_of) {
  const auto [batch, counted] = shared_ != nullptr ? shared_->share_of(whole) : Strategy::Share{whole, whole.samples()};
  const std::int64_t samples = batch.samples(),
                     size = options_.micro_batch == 0 ? samples : std::min(options_.micro_batch, samples);
  const bool is_whole = added_ + 1 == options_.batches;
  for (std::int64_t begin = 0; begin < samples; begin += size) {
    const std::int64_t end = std::min(samples, begin + size), counts = counted > 0 ? end - begin : 0;
    if (options_.rehearses && begin >= 2 * size && end < samples) {
      add_like_the_last(counts);
      continue;
    }
    const data::Batch piece = size == samples ? batch : batch.piece(begin, end);
    pieces_.push_back({make({piece, counts}, loss_of, is_whole && end == samples), counts});
  }
  ++added_;
  return is_whole ? std::optional(taken()) : std::nullopt;
}

std::optional<Accumulation::Step> Accumulation::flush() {
  if (pieces_.empty()) return {};
  if (shared_ != nullptr)
    shared_->parallel().update(optimizer_, precision_.scaler());
  else
    precision_.step(*accumulator_);
  return taken();
}

std::optional<std::int64_t> Accumulation::halve(std::int64_t batch) {
  if (shared_ != nullptr) return {};  // shares are not cut further
  const std::int64_t size = options_.micro_batch == 0 ? batch : std::min(options_.micro_batch, batch);
  if (size < 2) return {};
  if (!accumulator_) accumulator_.emplace(optimizer_);
  return options_.micro_batch = (size + 1) / 2;
}

std::int64_t Accumulation::samples() const {
  std::int64_t sum = 0;
  for (const Piece& piece : pieces_) sum += piece.samples;
  return sum;
}

Array Accumulation::loss() const {
  if (pieces_.size() == 1) return pieces_.front().loss;
  const auto all = static_cast<double>(std::max<std::int64_t>(1, samples()));
  Array mean;
  for (const Piece& piece : pieces_) {
    const Array share = piece.loss * (static_cast<double>(piece.samples) / all);
    mean = mean.defined() ? mean + share : share;
  }
  return mean;
}

Accumulation::Step Accumulation::taken() {
  Step step{{}, samples(), samples(), {}};
  if (shared_ != nullptr) step.mean = shared_->parallel().mean_loss();
  if (step.mean)
    step.all_samples = static_cast<std::int64_t>(shared_->parallel().global_samples());
  else
    step.loss = loss();
  pieces_.clear();
  added_ = 0;
  return step;
}

}  // namespace samebytes::train
