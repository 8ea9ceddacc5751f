#include "plan/arena.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "samebytes/error.h"

namespace samebytes::detail {

namespace {
constexpr std::size_t kAlignment = 128;  // the base alignment that OpenCL devices ask of sub-allocations
}

ArenaLayout lay_out(const std::vector<ArenaRequest>& requests, std::size_t most, bool share) {
  ArenaLayout layout;
  layout.places.resize(requests.size());
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return requests[a].bytes > requests[b].bytes; });

  std::vector<std::vector<std::size_t>> placed;  // by segment, ascending offsets
  for (const std::size_t r : order) {
    const std::size_t bytes = (requests[r].bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (bytes > most)
      throw OutOfMemory("plan: one temporary needs " + std::to_string(bytes) +
                            " bytes, the device's largest allocation is " + std::to_string(most),
                        bytes, most);
    bool done = false;
    for (std::size_t s = 0; !done; ++s) {
      if (s == placed.size()) {
        placed.emplace_back();
        layout.segments.push_back(0);
      }
      std::size_t offset = 0;
      for (const std::size_t other : placed[s]) {
        const bool meets =
            !share || (requests[other].first <= requests[r].last && requests[r].first <= requests[other].last);
        if (!meets) continue;
        const std::size_t start = layout.places[other].offset;
        if (offset + bytes <= start) break;
        offset = std::max(offset, (start + requests[other].bytes + kAlignment - 1) / kAlignment * kAlignment);
      }
      if (offset + bytes > most) continue;
      layout.places[r] = {static_cast<int>(s), offset};
      layout.segments[s] = std::max(layout.segments[s], offset + bytes);
      const auto at =
          std::upper_bound(placed[s].begin(), placed[s].end(), offset,
                           [&](std::size_t value, std::size_t other) { return value < layout.places[other].offset; });
      placed[s].insert(at, r);
      done = true;
    }
  }
  return layout;
}

}  // namespace samebytes::detail
