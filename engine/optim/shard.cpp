// The state of an optimizer shared out over processes: each keeps and updates a share of every arena.
#include <algorithm>
#include <string>
#include <utility>

#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "samebytes/optim/optimizer.h"

namespace samebytes::optim {
namespace {

constexpr std::int64_t kShareElements = 64;  // shares begin at a multiple of so many: cache lines, of any dtype

}  // namespace

std::pair<std::int64_t, std::int64_t> Optimizer::share(std::size_t arena, int rank) const {
  const std::int64_t size = arenas_[arena].size(), blocks = (size + kShareElements - 1) / kShareElements;
  const auto bound = [&](int of) { return std::min(size, blocks * of / shard_.ranks * kShareElements); };
  return {bound(rank), bound(rank + 1)};
}

void Optimizer::shard(Shard shard) {
  if (shard.ranks < 1 || shard.rank < 0 || shard.rank >= shard.ranks)
    throw ArgumentError(name_ + ": a shard has a rank from 0 to ranks - 1, rank " + std::to_string(shard.rank) +
                        " of " + std::to_string(shard.ranks) + " came");
  if (is_sharded()) throw ArgumentError(name_ + ": its state is sharded already");
  if (shard.ranks == 1) return;
  if (releases_gradients_)
    throw ArgumentError(name_ +
                        ": release_gradients updates each parameter where its gradient is; its state cannot be "
                        "sharded as well");
  const std::vector<std::vector<Array>*> lists = elementwise_cells();
  if (lists.empty())
    throw ArgumentError(name_ +
                        ": its state cannot be sharded, because an update looks at whole parameters; that of Adam, "
                        "AdamW, Sgd, RmsProp, Adagrad and Lion can");
  shard_ = std::move(shard);
  for (std::vector<Array>* const cells : lists)
    for (std::size_t arena = 0; arena < cells->size(); ++arena) {
      Array& whole = (*cells)[arena];
      if (!whole) continue;
      const auto [begin, end] = share(arena);
      // Before the first step it is zeros that nobody has asked for: then the whole is never there.
      const Array values = step_count_ == 0 ? zeros({end - begin}, whole.dtype()) : slice(whole, 0, begin, end);
      const Array part = cell(values, cell_name(whole), MemoryCategory::optimizer);
      if (step_count_ > 0) part.eval();
      whole = part;
    }
}

void Optimizer::set_shard_calls(std::function<void()> spread,
                                std::function<HostArray(std::size_t, const Array&)> gather) {
  shard_.spread = std::move(spread);
  shard_.gather = std::move(gather);
}

// All ranks evaluate all gradients, also those of which they update none: what they wait for comes with them.
std::vector<Optimizer::CellUpdate> Optimizer::updates_of_share(std::size_t arena, const Array& gradient) const {
  if (!is_sharded()) return updates(arena, gradient);
  const auto [begin, end] = share(arena);
  if (begin == end) return {{Array(), gradient}};
  return updates(arena, slice(gradient, 0, begin, end));
}

std::vector<std::pair<std::string, HostArray>> Optimizer::whole_state() const {
  std::vector<std::pair<std::string, HostArray>> result;
  for (const StateArray& entry : state())  // "0.moment1": of arena 0
    result.emplace_back(entry.name, shard_.gather(static_cast<std::size_t>(std::stoul(entry.name)), entry.array));
  return result;
}

}  // namespace samebytes::optim
