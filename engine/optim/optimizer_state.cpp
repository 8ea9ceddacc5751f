// What optimizers keep between steps: cells beside each arena, how they are stored, and what a scaler tells kernels
// that write them.
#include "ops/dtypes.h"
#include "optim/optimizer_impl.h"
#include "samebytes/ops.h"
#include "samebytes/weights.h"

namespace samebytes::optim {
namespace {

constexpr std::uint64_t kRoundingSeed = 0x6d6f6d656e747300;  // any; a run needs none of its own
constexpr unsigned kWeights = 255;                           // beside the numbers of moments

}  // namespace

std::vector<Array> Optimizer::zeros_for_arenas(const char* name) const {
  std::vector<Array> cells;
  for (std::size_t i = 0; i < impl_->arenas.size(); ++i) cells.push_back(zeros_for_arena(i, name));
  return cells;
}

Array Optimizer::zeros_for_arena(std::size_t arena, const char* name) const {
  return impl_->arenas[arena].zeros_like(impl_->name + " " + name + " " + std::to_string(arena),
                                         impl_->moments == f32 ? compute_dtype(arena) : impl_->moments);
}

Array Optimizer::widened(std::size_t arena, const Array& cell) const {
  return detail::as_dtype(cell, compute_dtype(arena));
}

Optimizer::CellUpdate Optimizer::kept(std::size_t arena, const Array& cell, const Array& next, int moment) const {
  if (cell.dtype() == next.dtype()) return {cell, next};
  // The parameters tell elements with equal moments apart, also where their gradients are 0.
  const RandomKey key{kRoundingSeed + arena,
                      (static_cast<std::uint64_t>(impl_->step_count) << 8) + static_cast<unsigned>(moment)};
  return {cell, round_stochastic(next, weights(arena), key)};
}

Array Optimizer::weights(std::size_t arena) const {
  const Array& values = impl_->arenas[arena].values();
  if (!is_sharded()) return detail::as_dtype(values, compute_dtype(arena));
  const auto [begin, end] = share(arena);
  return detail::as_dtype(slice(values, 0, begin, end), compute_dtype(arena));
}

Optimizer::CellUpdate Optimizer::written(std::size_t arena, const Array& next) const {
  const Array& values = impl_->arenas[arena].values();
  const RandomKey key{kRoundingSeed + arena, (static_cast<std::uint64_t>(impl_->step_count) << 8) + kWeights};
  if (is_sharded()) {
    const bool is_plain = values.dtype() == next.dtype();
    Array value = is_plain ? next : round_stochastic(next, weights(arena), key);
    const auto [begin, end] = share(arena);
    if (impl_->is_taken.defined()) value = where(impl_->is_taken, value, slice(values, 0, begin, end));
    return {Array(), update_parts(values, {value}, {&begin, 1})};
  }
  if (values.dtype() == next.dtype()) return {values, next};
  return {values, round_stochastic_into(values, next, key)};
}

std::vector<Array> Optimizer::momentum_buffers() const {
  std::vector<Array> cells(impl_->arenas.size());
  for (std::size_t i = 0; i < impl_->arenas.size(); ++i)
    if (impl_->keeps_momentum[impl_->arena_groups[i]]) cells[i] = zeros_for_arena(i, "momentum");
  return cells;
}

std::vector<StateArray> Optimizer::named(const char* name, const std::vector<Array>& cells) const {
  std::vector<StateArray> result;
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (cells[i].defined()) result.push_back({std::to_string(i) + "." + name, cells[i]});
  return result;
}

Array Optimizer::control(std::size_t arena, std::initializer_list<Array> numbers) const {
  if (!impl_->skipped.defined()) return {};  // there never was a scaler
  const Dtype dtype = compute_dtype(arena);
  std::vector<Array> all{impl_->is_taken.defined() ? detail::as_dtype(impl_->is_taken, dtype) : ones({1}, dtype)};
  for (const Array& number : numbers) all.push_back(detail::as_dtype(number, dtype));
  return all.size() == 1 ? all[0] : concat(all, 0);
}

}  // namespace samebytes::optim
