// How kernels over rows are shared among work-groups: several short rows per group, one long row per group.
// Used by ops whose kernels take (rows, columns, rows_per_group): reduce, softmax, cross_entropy, losses.
#pragma once

#include <algorithm>
#include <cstdint>

#include "graph/launch.h"

namespace samebytes::detail {

struct RowShare {
  std::int64_t groups;  // work-groups
  int rows_per_group;   // gpu: a power of two; the group's items are shared equally among its rows
  int group;            // work-items of a group in the gpu personality
};

inline RowShare cpu_rows(std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kElementsPerGroup = 8192;  // a few microseconds of work, so that a group's start does not show
  const auto each = std::clamp<std::int64_t>(kElementsPerGroup / std::max<std::int64_t>(columns, 1), 1, 512);
  return {(rows + each - 1) / each, static_cast<int>(each), 64};
}
inline RowShare gpu_rows(std::int64_t rows, std::int64_t columns) {
  // As few lanes for a row as give a large GPU enough of them all together, and as hold a row in their registers: a
  // row's sum takes a barrier for each doubling, and in small groups barriers cost less.
  constexpr std::int64_t kFewLanes = 32, kMostLanes = 256, kHeld = 32, kEnoughLanes = std::int64_t{1} << 17;
  const auto are_few = [&](std::int64_t lanes) { return rows * lanes < kEnoughLanes || lanes * kHeld < columns; };
  std::int64_t lanes = 1;
  while (lanes < columns && (lanes < kFewLanes || (lanes < kMostLanes && are_few(lanes)))) lanes *= 2;
  const int group = lanes <= 64 ? 64 : 256;
  const int each = group / static_cast<int>(lanes);
  return {(rows + each - 1) / each, each, group};
}
inline constexpr PerPersonality<RowShare (*)(std::int64_t rows, std::int64_t columns)> kRowShares{cpu_rows, gpu_rows};

inline RowShare share_rows(const Launch& run, std::int64_t rows, std::int64_t columns) {
  return run.pick(kRowShares)(rows, columns);
}

}  // namespace samebytes::detail
