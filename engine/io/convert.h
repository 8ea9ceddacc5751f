// Converts between a file's tensors and arrays: the order of axes and the floating dtype.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "samebytes/dtype.h"
#include "samebytes/shape.h"

namespace samebytes::io {

// Permutes values of `shape`: axis i of the result is axis axes[i] of src. Requires: one entry per axis.
std::vector<std::byte> permuted(std::span<const std::byte> src, const Shape& shape, std::span<const int> axes,
                                std::size_t width);

// Floating values in another floating dtype; 16-bit ones are rounded to nearest even. Requires: is_floating of both.
std::vector<std::byte> converted(std::span<const std::byte> src, Dtype from, Dtype to);

}  // namespace samebytes::io
