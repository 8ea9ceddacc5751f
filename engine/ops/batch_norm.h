// How the kernels of cl/*/batch_norm.cl see columns of channels; also the statistics of single images in
// group_norm.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "graph/launch.h"

namespace samebytes::detail {

// The layout for `images` arrays of `elements` values each, channels last, with statistics per image and channel.
// Depends only on shape and personality (see the head of the .cl files).
struct ColumnLayout {
  std::int64_t total;  // R * C, of one image
  int channels;
  int wide;  // columns of the statistics, a multiple of C
  int rows_per_part;
  int parts;
  int blocks;    // of columns
  int span;      // smallest multiple of C that holds a vector
  int coef_row;  // span and its padding
  int merge_groups;

  ColumnLayout(const Launch& run, std::int64_t elements, std::int64_t c, Dtype real, std::int64_t images = 1) {
    const auto constant = [&](const char* name) { return run.constant("batch_norm", name, real); };
    const std::int64_t unit = constant("BATCH_NORM_UNIT");
    const std::int64_t pad = constant("BATCH_NORM_PAD");
    const std::int64_t merge = constant("BATCH_NORM_CHANNELS");
    // Above this many columns, the padding of a row's last vector costs less than partial sums of that many columns.
    constexpr std::int64_t kWidest = 65536;
    // For an image with fewer rows, the partial sums would be about as large as the image.
    constexpr std::int64_t kFewestRows = 8;
    total = elements;
    channels = static_cast<int>(c);
    const std::int64_t common = c > kWidest ? c : std::lcm(c, unit);
    const bool is_small = images > 1 && common > total / kFewestRows;
    wide = static_cast<int>(common > kWidest || is_small ? c : common);
    const std::int64_t rows = (total + wide - 1) / wide;
    blocks = static_cast<int>((wide + unit - 1) / unit);
    const std::int64_t aim = (constant("BATCH_NORM_GROUPS") + blocks * images - 1) / (blocks * images);
    const std::int64_t smallest = std::max<std::int64_t>(1, constant("BATCH_NORM_PART") / unit);  // rows
    const std::int64_t wanted = std::clamp<std::int64_t>(rows / smallest, 1, aim);
    rows_per_part = static_cast<int>((rows + wanted - 1) / wanted);
    parts = static_cast<int>((rows + rows_per_part - 1) / rows_per_part);
    span = static_cast<int>(c * std::max<std::int64_t>(1, (pad + c - 1) / c));
    coef_row = static_cast<int>(span + pad);
    merge_groups = static_cast<int>((c + merge - 1) / merge);
  }

  // The local sizes that the GPU kernels require (BATCH_NORM_UNIT x BATCH_NORM_LANES, BATCH_NORM_MERGERS).
  static constexpr int kStatsX = 64, kStatsY = 4, kMergeX = 64;
};

}  // namespace samebytes::detail
