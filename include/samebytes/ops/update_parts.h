// Writes many parts of a flat cell in place: engine/ops/cells.cpp.
// All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include <cstdint>
#include <span>

#include "samebytes/array.h"

namespace samebytes {

// Returns a node that, when evaluated, overwrites parts of a flat cell [n]: arrays[i], dense, from offsets[i] on. The
// rest of the cell stays; the node's value is the whole cell afterwards. If no other node of that run reads the cell,
// the producers of the arrays write into it directly, before this node: read the result, not the cell. Offsets must
// ascend without overlap, and dtypes must be equal.
Array update_parts(const Input& cell, const Inputs& arrays, std::span<const std::int64_t> offsets);

}  // namespace samebytes
