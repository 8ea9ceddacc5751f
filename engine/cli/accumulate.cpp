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
      micro_batch_(options.step.micro_batch.value_or(0)),
      rehearses_(options.limit.rehearses) {
  check_release(options);
  if (batches_ > 1 || micro_batch_ > 0) accumulator_.emplace(optimizer);
}

void Accumulation::add_piece(const data::Batch& piece, const LossOf& loss_of, bool is_last) {
  const Array loss = loss_of(piece);
  const auto samples = static_cast<double>(piece.samples());
  if (is_last)
    precision_.step(*accumulator_, loss, samples);
  else
    accumulator_->add(precision_.scaled(loss), samples);
  pieces_.push_back({loss, piece.samples()});
}

// The third piece and the ones after it, but for the last, have the plan of the second: of what they hold there is the
// loss.
void Accumulation::add_like_the_last(std::int64_t samples) {
  const Array loss = zeros(pieces_.back().loss.shape(), pieces_.back().loss.dtype());
  loss.eval();
  pieces_.push_back({loss, samples});
}

std::optional<Accumulation::Step> Accumulation::add(const data::Batch& batch, const LossOf& loss_of) {
  if (shared_ != nullptr) return Step{shared_->step(optimizer_, precision_, batch, loss_of), batch.samples()};
  if (!accumulator_) {
    const Array loss = loss_of(batch);
    precision_.step(optimizer_, loss);
    return Step{loss, batch.samples()};
  }
  const std::int64_t samples = batch.samples(), size = micro_batch_ == 0 ? samples : std::min(micro_batch_, samples);
  const bool is_whole = ++added_ == batches_;
  for (std::int64_t begin = 0; begin < samples; begin += size) {
    const std::int64_t end = std::min(samples, begin + size);
    if (rehearses_ && begin >= 2 * size && end < samples) {
      add_like_the_last(end - begin);
      continue;
    }
    add_piece(size == samples ? batch : batch.piece(begin, end), loss_of, is_whole && end == samples);
  }
  return is_whole ? std::optional(taken()) : std::nullopt;
}

std::optional<Accumulation::Step> Accumulation::flush() {
  if (pieces_.empty()) return {};
  precision_.step(*accumulator_);
  return taken();
}

std::optional<std::int64_t> Accumulation::halve(std::int64_t batch) {
  if (shared_ != nullptr) return {};  // shares are not cut further
  const std::int64_t size = micro_batch_ == 0 ? batch : std::min(micro_batch_, batch);
  if (size < 2) return {};
  if (!accumulator_) accumulator_.emplace(optimizer_);
  return micro_batch_ = (size + 1) / 2;
}

Accumulation::Step Accumulation::taken() {
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
