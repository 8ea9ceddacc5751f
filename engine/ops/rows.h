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

inline RowShare share_rows(const Launch& run, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kElementsPerGroup =
      8192;                                // cpu: a few microseconds of work, so that a group's start does not show
  constexpr std::int64_t kLongRow = 1024;  // gpu: from here on a row keeps 256 items busy
  RowShare share{1, 1, 64};
  if (run.is_cpu()) {
    share.rows_per_group =
        static_cast<int>(std::clamp<std::int64_t>(kElementsPerGroup / std::max<std::int64_t>(columns, 1), 1, 512));
  } else {
    share.group = columns >= kLongRow ? 256 : 64;
    int lanes = 1;
    while (lanes < columns && lanes < share.group) lanes *= 2;
    share.rows_per_group = share.group / lanes;
  }
  share.groups = (rows + share.rows_per_group - 1) / share.rows_per_group;
  return share;
}

}  // namespace samebytes::detail
