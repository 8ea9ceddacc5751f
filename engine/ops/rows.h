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
  constexpr std::int64_t kLongRow = 1024;  // from here on a row keeps 256 items busy
  const int group = columns >= kLongRow ? 256 : 64;
  int lanes = 1;
  while (lanes < columns && lanes < group) lanes *= 2;
  const int each = group / lanes;
  return {(rows + each - 1) / each, each, group};
}
inline constexpr PerPersonality<RowShare (*)(std::int64_t rows, std::int64_t columns)> kRowShares{cpu_rows, gpu_rows};

inline RowShare share_rows(const Launch& run, std::int64_t rows, std::int64_t columns) {
  return run.pick(kRowShares)(rows, columns);
}

}  // namespace samebytes::detail
