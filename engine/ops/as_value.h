// What an op returns that has nothing to do: a roll by a whole turn, a reshape to the same shape, a cast to the same
// type.
#pragma once

#include "samebytes/array.h"

namespace samebytes::detail {

// The value of `a`, which may be `a` itself. Of a leaf it is a view: the handle of a cell would show what is written to
// the cell later, but an array means the value that it had when the expression was written. In view.cpp.
Array as_value(const Array& a);

}  // namespace samebytes::detail
