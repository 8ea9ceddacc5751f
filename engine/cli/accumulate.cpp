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
      micro_batch_(options.step.micro_batch.value_or(0)) {
  check_release(options);
  if (batches_ > 1 || micro_batch_ > 0) accumulator_.emplace(optimizer);
}

void Accumulation::add_piece(const data::Batch& piece, std::int64_t samples, const LossOf& loss_of) {
  const Array loss = loss_of(piece);
  // What does not count is nothing beside what does, and left out where there is nothing else (Ranks::all_reduce).
  accumulator_->add(precision_.scaled(loss), samples > 0 ? static_cast<double>(samples) : kNextToNothing);
  pieces_.push_back({loss, samples});
}

std::optional<Accumulation::Step> Accumulation::add(const data::Batch& whole, const LossOf& loss_of) {
  const auto [batch, counted] = ranks_.share_of(whole);
  if (!accumulator_) {
    const Array loss = loss_of(batch);
    ranks_.set_samples(counted);
    precision_.step(optimizer_, loss);
    return Step{loss, counted, ranks_.global_samples(counted)};
  }
  const std::int64_t samples = batch.samples();
  if (micro_batch_ == 0 || micro_batch_ >= samples)
    add_piece(batch, counted, loss_of);
  else
    for (std::int64_t begin = 0; begin < samples; begin += micro_batch_) {
      const std::int64_t end = std::min(samples, begin + micro_batch_);
      add_piece(batch.piece(begin, end), counted > 0 ? end - begin : 0, loss_of);
    }
  return ++added_ == batches_ ? flush() : std::nullopt;
}

std::optional<Accumulation::Step> Accumulation::flush() {
  if (pieces_.empty()) return {};
  Step step;
  for (const Piece& piece : pieces_) step.samples += piece.samples;
  ranks_.set_samples(step.samples);
  ranks_.all_reduce(*accumulator_);
  precision_.step(*accumulator_);
  step.all_samples = ranks_.global_samples(step.samples);
  for (const Piece& piece : pieces_) {
    const auto all = static_cast<double>(std::max<std::int64_t>(1, step.samples));
    const Array share = piece.loss * (static_cast<double>(piece.samples) / all);
    step.loss = step.loss ? step.loss + share : share;
  }
  pieces_.clear();
  added_ = 0;
  return step;
}

}  // namespace samebytes::cli
