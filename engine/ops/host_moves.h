// Moves of elements as bits on the host, for small launches: concat, pad and update_slice of cl/*/. Each has the
// arguments of its kernel, elements of 1, 2, 4 or 8 bytes, and gives the same bytes in both personalities.
#pragma once

#include <cstdint>

#include "graph/launch.h"

namespace samebytes::detail {

// Each offers the host form of a launch with the kernel's arrays, unless there is too much to move.
void add_host_concat(KernelCall& call, std::size_t width_of_element, std::int64_t rows, std::int64_t width,
                     std::int64_t dst_stride, std::int64_t start);

// src [outer, high_n, between, n, inner] -> dst [outer, high_d, between, d, inner], as pad_fwd; the arrays are src,
// fill or none, dst.
struct HostPad {
  std::int64_t rows = 1;  // of dst: outer * high_d * between
  std::int64_t n = 1, d = 1, inner = 1, before = 0;
  std::int64_t high_n = 1, high_d = 1, high_before = 0, between = 1;
  int mode = 0;  // PAD_* of shared/pad.h
};
void add_host_pad(KernelCall& call, std::size_t width_of_element, const HostPad& shape);

// src [outer, count] -> dst [outer, line] from element start * inner on, where start is the changing scalar.
struct HostUpdate {
  std::int64_t outer = 1, count = 1, line = 1, inner = 1;
};
void add_host_update(KernelCall& call, std::size_t width_of_element, const HostUpdate& shape);

}  // namespace samebytes::detail
