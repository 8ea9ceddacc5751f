// Working copies: 16-bit cells with the rounded values of f32 cells. Ops under Autocast read them instead of casting a
// parameter in every step. An update of the f32 cell that the user asks for also overwrites the copy in the same run
// (Op::companion); after any other change the copy is stale and is rewritten at its next use. All under the context's
// mutex.
#pragma once

#include "graph/node.h"
#include "samebytes/array.h"

namespace samebytes::detail {

// The copy of `cell` in dtype with the cell's present values; an empty handle if there is none.
Array current_working_copy(const Array& cell, Dtype dtype);
// Call after `update` has run together with the update of the working copy: the two agree.
void note_overwritten(const Node& update);
// Marks the two as equal. Requires: cell.cell->working.
void note_agreement(const Node& cell);
// Marks the parts of a flat cell as equal, too.
void note_all_agree(const Node& cell);

}  // namespace samebytes::detail
