// The state of an optimizer shared out over processes: each keeps and updates a share of every arena.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "optim/optimizer_impl.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::optim {
namespace {

constexpr std::int64_t kShareElements = 64;  // shares begin at a multiple of so many: cache lines, of any dtype

// The place between two parameters that is nearest to `element`.
std::int64_t nearest_bound(const ParameterArena& arena, std::int64_t element) {
  std::int64_t nearest = arena.size();
  for (const std::int64_t offset : arena.offsets())
    if (std::abs(offset - element) < std::abs(nearest - element)) nearest = offset;
  return nearest;
}

}  // namespace

std::pair<std::int64_t, std::int64_t> Optimizer::share(std::size_t arena, int rank) const {
  const std::int64_t size = impl_->arenas[arena].size(), blocks = (size + kShareElements - 1) / kShareElements;
  const auto bound = [&](int of) {
    if (of == 0 || of == impl_->shard.ranks) return of == 0 ? 0 : size;
    if (impl_->shares_parameters) return nearest_bound(impl_->arenas[arena], size * of / impl_->shard.ranks);
    return std::min(size, blocks * of / impl_->shard.ranks * kShareElements);
  };
  return {bound(rank), bound(rank + 1)};
}

bool Optimizer::is_sharded() const { return impl_->shard.ranks > 1; }
int Optimizer::shard_rank() const { return impl_->shard.rank; }

const Optimizer::Cut& Optimizer::cut_of(const Array& cell) const {
  for (const auto& [part, cut] : impl_->sharded_cells)
    if (part.node() == cell.node()) return cut;
  throw ArgumentError(impl_->name + ": cut_of needs an array of a state that is sharded");
}

std::int64_t Optimizer::state_before(std::size_t, std::size_t, std::int64_t element) const { return element; }

void Optimizer::shard(Shard shard) {
  if (shard.ranks < 1 || shard.rank < 0 || shard.rank >= shard.ranks)
    throw ArgumentError(impl_->name + ": a shard has a rank from 0 to ranks - 1, got rank " +
                        std::to_string(shard.rank) + " of " + std::to_string(shard.ranks));
  if (is_sharded()) throw ArgumentError(impl_->name + ": its state is sharded already");
  if (shard.ranks == 1) return;
  if (impl_->releases_gradients)
    throw ArgumentError(impl_->name +
                        ": release_gradients updates each parameter where its gradient is; its state cannot be "
                        "sharded as well");
  std::vector<std::vector<Array>*> lists = elementwise_cells();
  const bool has_elementwise = !lists.empty();
  if (!has_elementwise) lists = cells_of_parameters();
  if (lists.empty())
    throw ArgumentError(impl_->name +
                        ": its state cannot be sharded, because it does not say which arrays are of parameters");
  impl_->shares_parameters = !has_elementwise;
  impl_->shard = std::move(shard);
  for (std::size_t list = 0; list < lists.size(); ++list)
    for (std::size_t arena = 0; arena < lists[list]->size(); ++arena) {
      Array& whole = (*lists[list])[arena];
      if (!whole.defined()) continue;
      Cut cut;
      cut.size = whole.size();
      for (int rank = 0; rank < impl_->shard.ranks; ++rank)
        cut.bounds.push_back(state_before(list, arena, share(arena, rank).first));
      cut.bounds.push_back(state_before(list, arena, impl_->arenas[arena].size()));
      const auto own = static_cast<std::size_t>(impl_->shard.rank);
      const std::int64_t begin = cut.bounds[own], end = cut.bounds[own + 1];
      // An array without elements is for a share without parameters alone.
      const bool is_filled_up = begin == end && share(arena).first < share(arena).second;
      // Before the first step it is zeros that nobody has asked for: then the whole is never there.
      const Array values = impl_->step_count == 0 || is_filled_up
                               ? zeros({is_filled_up ? 1 : end - begin}, whole.dtype())
                               : slice(whole, 0, begin, end);
      const Array part = cell(values, cell_name(whole), MemoryCategory::optimizer);
      if (impl_->step_count > 0) part.eval();
      whole = part;
      impl_->sharded_cells.emplace_back(part, std::move(cut));
    }
  follow_share();
}

void Optimizer::set_shard_calls(std::function<void()> spread, std::function<HostArray(const Array&)> gather) {
  impl_->shard.spread = std::move(spread);
  impl_->shard.gather = std::move(gather);
}

// All ranks evaluate all gradients, also those of which they update none: what they wait for comes with them.
std::vector<Optimizer::CellUpdate> Optimizer::updates_of_share(std::size_t arena, const Array& gradient) const {
  if (!is_sharded()) return updates(arena, gradient);
  const auto [begin, end] = share(arena);
  if (begin == end) return {{Array(), gradient}};
  return updates(arena, impl_->shares_parameters ? gradient : share_of(arena, gradient));
}

Array Optimizer::share_of(std::size_t arena, const Array& gradient) const {
  if (!is_sharded()) return gradient;
  const auto [begin, end] = share(arena);
  return slice(gradient, 0, begin, end);
}

std::vector<std::pair<std::string, HostArray>> Optimizer::whole_state() const {
  std::vector<std::pair<std::string, HostArray>> result;
  for (const StateArray& entry : state()) result.emplace_back(entry.name, impl_->shard.gather(entry.array));
  return result;
}

}  // namespace samebytes::optim
