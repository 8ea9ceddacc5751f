#include "cli/accumulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/usage_error.h"
#include "samebytes/ops.h"

namespace samebytes::cli {
namespace {

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

Accumulation::Accumulation(const Options& options, Precision& precision, optim::Optimizer& optimizer)
    : precision_(precision),
      optimizer_(optimizer),
      batches_(options.step.accumulate),
      micro_batch_(options.step.micro_batch.value_or(0)) {
  check_release(options);
  if (batches_ > 1 || micro_batch_ > 0) accumulator_.emplace(optimizer);
}

void Accumulation::add_piece(const data::Batch& piece, const LossOf& loss_of) {
  const Array loss = loss_of(piece);
  accumulator_->add(precision_.scaled(loss), static_cast<double>(piece.samples()));
  pieces_.push_back({loss, piece.samples()});
}

std::optional<Accumulation::Step> Accumulation::add(const data::Batch& batch, const LossOf& loss_of) {
  if (!accumulator_) {
    const Array loss = loss_of(batch);
    precision_.step(optimizer_, loss);
    return Step{loss, batch.samples()};
  }
  const std::int64_t samples = batch.samples();
  if (micro_batch_ == 0 || micro_batch_ >= samples)
    add_piece(batch, loss_of);
  else
    for (std::int64_t begin = 0; begin < samples; begin += micro_batch_)
      add_piece(batch.piece(begin, std::min(samples, begin + micro_batch_)), loss_of);
  return ++added_ == batches_ ? flush() : std::nullopt;
}

std::optional<Accumulation::Step> Accumulation::flush() {
  if (pieces_.empty()) return {};
  precision_.step(*accumulator_);
  Step step;
  for (const Piece& piece : pieces_) step.samples += piece.samples;
  for (const Piece& piece : pieces_) {
    const Array share = piece.loss * (static_cast<double>(piece.samples) / static_cast<double>(step.samples));
    step.loss = step.loss ? step.loss + share : share;
  }
  pieces_.clear();
  added_ = 0;
  return step;
}

}  // namespace samebytes::cli
