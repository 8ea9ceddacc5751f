#include "samebytes/train/accumulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::train {
namespace {

constexpr double kNextToNothing = 1e-30;  // samples

}  // namespace

Accumulation::Accumulation(const AccumulationOptions& options, Precision& precision, optim::Optimizer& optimizer,
                           DeviceStrategy* devices, RankStrategy* ranks)
    : options_(options), precision_(precision), optimizer_(optimizer), devices_(devices), ranks_(ranks) {
  if (options.batches < 1)
    throw ArgumentError(fmt::format("accumulation: expected 1 batch or more an update, got {}", options.batches));
  if (options.micro_batch < 0)
    throw ArgumentError(
        fmt::format("accumulation: expected a micro-batch of 0 samples (all) or more, got {}", options.micro_batch));
  // Several devices have sums of their own.
  if (devices_ == nullptr && (options.batches > 1 || options.micro_batch > 0)) accumulator_.emplace(optimizer);
}

void Accumulation::add_piece(const data::Batch& piece, std::int64_t samples, const LossOf& loss_of, bool is_last) {
  if (devices_ != nullptr) {
    pieces_.push_back({devices_->add(optimizer_, precision_.scaler(), piece, loss_of), samples});
    if (is_last) devices_->update(optimizer_, precision_.scaler());
    return;
  }
  const Array loss = loss_of(piece);
  pieces_.push_back({loss, samples});
  // What does not count is nothing beside what does, and left out where there is nothing else (RankStrategy::tell).
  const double weight = samples > 0 ? static_cast<double>(samples) : kNextToNothing;
  if (!is_last) return accumulator_->add(precision_.scaled(loss), weight);
  tell_ranks();
  precision_.step(*accumulator_, loss, weight);
}

// The third piece and the ones after it, but for the last, have the plan of the second: of what they hold there is the
// loss.
void Accumulation::add_like_the_last(std::int64_t samples) {
  const Array loss = zeros(pieces_.back().loss.shape(), pieces_.back().loss.dtype());
  loss.eval();
  pieces_.push_back({loss, samples});
}

std::optional<Accumulation::Step> Accumulation::add(const data::Batch& whole, const LossOf& loss_of) {
  if (devices_ != nullptr && options_.batches == 1 && options_.micro_batch == 0)
    return Step{devices_->step(optimizer_, precision_.scaler(), whole, loss_of), whole.samples(), whole.samples()};
  const auto [batch, counted] =
      ranks_ != nullptr ? ranks_->share_of(whole) : RankStrategy::Share{whole, whole.samples()};
  if (!accumulator_ && devices_ == nullptr) {
    const Array loss = loss_of(batch);
    if (ranks_ != nullptr) ranks_->tell(counted, loss);
    precision_.step(optimizer_, loss);
    return step_of(loss, counted);
  }
  const std::int64_t samples = batch.samples(),
                     size = options_.micro_batch == 0 ? samples : std::min(options_.micro_batch, samples);
  const bool is_whole = ++added_ == options_.batches;
  for (std::int64_t begin = 0; begin < samples; begin += size) {
    const std::int64_t end = std::min(samples, begin + size);
    if (options_.rehearses && begin >= 2 * size && end < samples) {
      add_like_the_last(end - begin);
      continue;
    }
    add_piece(size == samples ? batch : batch.piece(begin, end), counted > 0 ? end - begin : 0, loss_of,
              is_whole && end == samples);
  }
  return is_whole ? std::optional(taken()) : std::nullopt;
}

std::optional<Accumulation::Step> Accumulation::flush() {
  if (pieces_.empty()) return {};
  update();
  return taken();
}

std::optional<std::int64_t> Accumulation::halve(std::int64_t batch) {
  if (devices_ != nullptr) return {};  // shares are not cut further
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
  const auto all = static_cast<double>(std::max<std::int64_t>(1, samples()));
  Array mean;
  for (const Piece& piece : pieces_) {
    const Array share = piece.loss * (static_cast<double>(piece.samples) / all);
    mean = mean.defined() ? mean + share : share;
  }
  return mean;
}

void Accumulation::tell_ranks() {
  if (ranks_ != nullptr) ranks_->tell(samples(), loss());
}

void Accumulation::update() {
  if (devices_ != nullptr) return devices_->update(optimizer_, precision_.scaler());
  tell_ranks();
  if (ranks_ != nullptr) ranks_->all_reduce(*accumulator_);
  precision_.step(*accumulator_);
}

Accumulation::Step Accumulation::step_of(const Array& loss, std::int64_t samples) const {
  if (ranks_ == nullptr) return {loss, samples, samples, {}};
  const std::optional<double> mean = ranks_->mean_loss();
  return {mean ? Array() : loss, samples, ranks_->global_samples(samples), mean};
}

Accumulation::Step Accumulation::taken() {
  Step step = step_of(ranks_ != nullptr ? Array() : loss(), samples());
  pieces_.clear();
  added_ = 0;
  return step;
}

}  // namespace samebytes::train
