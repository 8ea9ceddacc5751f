// Writing many parts of a flat cell in place: engine/ops/cells.cpp.
// All throw ArgumentError: op, need, what came.
#pragma once

#include <cstdint>
#include <span>

#include "samebytes/array.h"

namespace samebytes {

// A node that, when it is evaluated, overwrites parts of a flat cell [n]: arrays[i], dense, at offsets[i] and further.
// What lies between them stays; its value is the whole cell from then on. Where nobody else reads the cell in that run,
// the producers of the arrays write there directly, before this node: read its result, not the cell. Offsets ascend
// without overlap; all of one dtype.
Array update_parts(const Array& cell, std::span<const Array> arrays, std::span<const std::int64_t> offsets);

}  // namespace samebytes
