// Working copies: 16-bit cells with the values of f32 cells, rounded, that ops under Autocast read instead of casting a
// parameter in every step. Whatever overwrites the f32 cell by an update that is asked for overwrites the copy in the
// same run (Op::companion); after anything else that changed it the copy is found stale and written anew at its next
// use. All under the context's mutex.
#pragma once

#include "graph/node.h"
#include "samebytes/array.h"

namespace samebytes::detail {

// The copy of `cell` in dtype with the cell's present values; an empty handle where there is none.
Array current_working_copy(const Array& cell, Dtype dtype);
// `update` was asked for and has run together with the update of the working copy: they agree.
void note_overwritten(const Node& update);
// They agree now. Requires: cell.cell->working.
void note_agreement(const Node& cell);
// And so do the parts of a flat cell.
void note_all_agree(const Node& cell);

}  // namespace samebytes::detail
