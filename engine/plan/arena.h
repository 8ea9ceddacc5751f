// Arena layout: every temporary buffer of a plan gets a fixed place; buffers whose lifetimes do not meet share bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace samebytes::detail {

struct ArenaRequest {
  std::size_t bytes = 0;
  int first = 0;  // launch that writes it first
  int last = 0;   // launch that reads it last
};

struct ArenaPlace {
  int segment = 0;
  std::size_t offset = 0;
};

struct ArenaLayout {
  std::vector<ArenaPlace> places;  // one per request
  std::vector<std::size_t>
      segments;  // bytes of each; more than one only where the device's largest allocation is smaller
};

// Largest first, each at the lowest offset that is free during its life (best-fit by size, as in Pisarchyk and Lee
// 2020). Throws OutOfMemory where one buffer alone exceeds `most`.
ArenaLayout lay_out(const std::vector<ArenaRequest>& requests, std::size_t most, bool share);

}  // namespace samebytes::detail
