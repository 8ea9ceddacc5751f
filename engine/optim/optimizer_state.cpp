// What optimizers keep between steps: cells beside each arena, how they are stored, and what a scaler tells kernels
// that write them.
#include "samebytes/ops.h"
#include "samebytes/optim/optimizer.h"
#include "samebytes/weights.h"

namespace samebytes::optim {
namespace {

constexpr std::uint64_t kRoundingSeed = 0x6d6f6d656e747300;  // any; a run needs none of its own
constexpr unsigned kWeights = 255;                           // beside the numbers of moments

}  // namespace

std::vector<Array> Optimizer::zeros_for_arenas(const char* name) const {
  std::vector<Array> cells;
  for (std::size_t i = 0; i < arenas_.size(); ++i) cells.push_back(zeros_for_arena(i, name));
  return cells;
}

Array Optimizer::zeros_for_arena(std::size_t arena, const char* name) const {
  return arenas_[arena].zeros_like(name_ + " " + name + " " + std::to_string(arena),
                                   moments_ == f32 ? compute_dtype(arena) : moments_);
}

Array Optimizer::widened(std::size_t arena, const Array& cell) const { return astype(cell, compute_dtype(arena)); }

Optimizer::CellUpdate Optimizer::kept(std::size_t arena, const Array& cell, const Array& next, int moment) const {
  if (cell.dtype() == next.dtype()) return {cell, next};
  // The parameters tell elements with equal moments apart, also where their gradients are 0.
  const RandomKey key{kRoundingSeed + arena,
                      (static_cast<std::uint64_t>(step_count_) << 8) + static_cast<unsigned>(moment)};
  return {cell, round_stochastic(next, weights(arena), key)};
}

Array Optimizer::weights(std::size_t arena) const {
  const Array& values = arenas_[arena].values();
  if (!is_sharded()) return astype(values, compute_dtype(arena));
  const auto [begin, end] = share(arena);
  return astype(slice(values, 0, begin, end), compute_dtype(arena));
}

Optimizer::CellUpdate Optimizer::written(std::size_t arena, const Array& next) const {
  const Array& values = arenas_[arena].values();
  const RandomKey key{kRoundingSeed + arena, (static_cast<std::uint64_t>(step_count_) << 8) + kWeights};
  if (is_sharded()) {
    const bool is_plain = values.dtype() == next.dtype();
    Array value = is_plain ? next : round_stochastic(next, weights(arena), key);
    const auto [begin, end] = share(arena);
    if (is_taken_.defined()) value = where(is_taken_, value, slice(values, 0, begin, end));
    return {Array(), update_parts(values, {&value, 1}, {&begin, 1})};
  }
  if (values.dtype() == next.dtype()) return {values, next};
  return {values, round_stochastic_into(values, next, key)};
}

std::vector<TrustSegments> Optimizer::segments_of_arenas() const {
  std::vector<TrustSegments> segments;
  for (std::size_t i = 0; i < arenas_.size(); ++i) {
    const ParameterArena& arena = arenas_[i];
    std::vector<std::int64_t> sizes;
    for (const Array& parameter : arena.parameters()) sizes.push_back(parameter.size());
    const auto [begin, end] = share(i);
    segments.emplace_back(arena.offsets(), sizes, arena.size(), begin, end);
  }
  return segments;
}

std::vector<Array> Optimizer::momentum_buffers() const {
  std::vector<Array> cells(arenas_.size());
  for (std::size_t i = 0; i < arenas_.size(); ++i)
    if (keeps_momentum(arena_groups_[i])) cells[i] = zeros_for_arena(i, "momentum");
  return cells;
}

std::vector<StateArray> Optimizer::named(const char* name, const std::vector<Array>& cells) const {
  std::vector<StateArray> result;
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (cells[i].defined()) result.push_back({std::to_string(i) + "." + name, cells[i]});
  return result;
}

Array Optimizer::control(std::size_t arena, std::initializer_list<Array> numbers) const {
  if (!skipped_.defined()) return {};  // there never was a scaler
  const Dtype dtype = compute_dtype(arena);
  std::vector<Array> all{is_taken_.defined() ? astype(is_taken_, dtype) : ones({1}, dtype)};
  for (const Array& number : numbers) all.push_back(astype(number, dtype));
  return all.size() == 1 ? all[0] : concat(all, 0);
}

}  // namespace samebytes::optim
