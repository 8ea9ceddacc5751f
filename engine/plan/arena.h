// Arena layout: every temporary buffer of a plan gets a fixed place; buffers whose lifetimes do not meet share bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace samebytes::detail {

struct ArenaRequest {
  std::size_t bytes = 0;
  int first = 0;  // launch that writes it first
  int last = 0;   // launch that reads it last
  // Requests of one group lie at these distances from each other, whatever their lives: the parts of a flat gradient.
  int group = -1;
  std::size_t group_offset = 0;  // a multiple of 128
  // A bit for each device that uses it. Bytes are shared in time on one device only, whose launches run in order.
  std::uint64_t devices = 1;
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

// Each at the lowest offset that is free during its life, the largest first (best-fit by size, as in Pisarchyk and Lee
// 2020); where that is far from least_bytes(), other orders are tried too. Throws OutOfMemory where one buffer or group
// alone exceeds `most`.
ArenaLayout lay_out(const std::vector<ArenaRequest>& requests, std::size_t most);

// The largest sum of bytes that live at once: no layout is smaller.
std::size_t least_bytes(const std::vector<ArenaRequest>& requests);

}  // namespace samebytes::detail
