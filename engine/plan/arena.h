// Arena layout: gives every temporary buffer of a plan a fixed place; buffers with disjoint lifetimes share bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace samebytes::detail {

struct ArenaRequest {
  std::size_t bytes = 0;
  int first = 0;  // the launch that first writes it
  int last = 0;   // the launch that last reads it
  // The requests of one group keep these distances from each other, whatever their lifetimes: the parts of a flat
  // gradient.
  int group = -1;
  std::size_t group_offset = 0;  // a multiple of 128
  // One bit for each device that uses it. Only requests of the same single device share bytes: its launches run in
  // order.
  std::uint64_t devices = 1;
};

struct ArenaPlace {
  int segment = 0;
  std::size_t offset = 0;
};

struct ArenaLayout {
  std::vector<ArenaPlace> places;  // one per request
  std::vector<std::size_t>
      segments;  // bytes of each; more than one only if the arena exceeds the device's largest allocation
};

// Places each request at the lowest offset that is free during its life, the largest first (best-fit by size, as in
// Pisarchyk and Lee 2020); if the result is far from least_bytes(), tries other orders too. Throws OutOfMemory if a
// single buffer or group exceeds `most`.
ArenaLayout lay_out(const std::vector<ArenaRequest>& requests, std::size_t most);

// The largest sum of bytes that live at the same time: a lower bound for every layout.
std::size_t least_bytes(const std::vector<ArenaRequest>& requests);

}  // namespace samebytes::detail
