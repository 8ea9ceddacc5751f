#include "cli/accumulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/usage_error.h"
#include "samebytes/ops.h"

namespace samebytes::cli {
namespace {

constexpr double kNextToNothing = 1e-30;  // samples

void check_release(const Options& options) {
  if (!options.release_gradients) return;
  const auto refuse = [](const char* other, const char* why) {
    throw UsageError(
        fmt::format("--release-gradients updates parameters as soon as their gradients are there, but {} "
                    "{}; use one of the two",
                    other, why));
  };
  if (options.step.accumulate > 1) refuse("--accumulate", "adds up the gradients of several batches first");
  if (options.step.micro_batch) refuse("--micro-batch", "adds up the gradients of several pieces first");
  if (options.precision == "f16") refuse("--precision f16", "looks for overflows in all of them first");
}

}  // namespace

Accumulation::Accumulation(const Options& options, Precision& precision, optim::Optimizer& optimizer, Ranks* ranks)
    : precision_(precision),
      optimizer_(optimizer),
      ranks_(ranks != nullptr ? *ranks : alone_),
      batches_(options.step.accumulate),
      micro_batch_(options.step.micro_batch.value_or(0)),
      rehearses_(options.limit.rehearses) {
  check_release(options);
  if (batches_ > 1 || micro_batch_ > 0) accumulator_.emplace(optimizer);
}

// Several devices have sums of their own.
void Accumulation::share(SharedSteps* shared) {
  shared_ = shared;
  if (shared_ != nullptr) accumulator_.reset();
}

void Accumulation::add_piece(const data::Batch& piece, std::int64_t samples, const LossOf& loss_of, bool is_last) {
  if (shared_ != nullptr) {
    pieces_.push_back({shared_->add(optimizer_, precision_, piece, loss_of), samples});
    if (is_last) shared_->update(optimizer_, precision_);
    return;
  }
  const Array loss = loss_of(piece);
  pieces_.push_back({loss, samples});
  // What does not count is nothing beside what does, and left out where there is nothing else (Ranks::set_samples).
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
  if (shared_ != nullptr && batches_ == 1 && micro_batch_ == 0)
    return Step{shared_->step(optimizer_, precision_, whole, loss_of), whole.samples(), whole.samples()};
  const auto [batch, counted] = ranks_.share_of(whole);
  if (!accumulator_ && shared_ == nullptr) {
    const Array loss = loss_of(batch);
    ranks_.tell(counted, loss);
    precision_.step(optimizer_, loss);
    return step_of(loss, counted);
  }
  const std::int64_t samples = batch.samples(), size = micro_batch_ == 0 ? samples : std::min(micro_batch_, samples);
  const bool is_whole = ++added_ == batches_;
  for (std::int64_t begin = 0; begin < samples; begin += size) {
    const std::int64_t end = std::min(samples, begin + size);
    if (rehearses_ && begin >= 2 * size && end < samples) {
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
  step();
  return taken();
}

std::optional<std::int64_t> Accumulation::halve(std::int64_t batch) {
  if (shared_ != nullptr) return {};  // shares are not cut further
  const std::int64_t size = micro_batch_ == 0 ? batch : std::min(micro_batch_, batch);
  if (size < 2) return {};
  if (!accumulator_) accumulator_.emplace(optimizer_);
  return micro_batch_ = (size + 1) / 2;
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
  if (ranks_.are_many()) ranks_.tell(samples(), loss());
}

void Accumulation::step() {
  if (shared_ != nullptr) return shared_->update(optimizer_, precision_);
  tell_ranks();
  ranks_.all_reduce(*accumulator_);
  precision_.step(*accumulator_);
}

Accumulation::Step Accumulation::step_of(const Array& loss, std::int64_t samples) const {
  const std::optional<double> mean = ranks_.mean_loss();
  return {mean ? Array() : loss, samples, ranks_.global_samples(samples), mean};
}

Accumulation::Step Accumulation::taken() {
  Step step = step_of(ranks_.are_many() ? Array() : loss(), samples());
  pieces_.clear();
  added_ = 0;
  return step;
}

}  // namespace samebytes::cli
