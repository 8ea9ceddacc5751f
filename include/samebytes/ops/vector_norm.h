// What norms of vectors are made of.
#pragma once

#include "samebytes/array.h"

namespace samebytes {

// The sum of the squares of all elements, one element: sum(square(a)) in one pass over a, with nothing between. Of
// nothing it is 0. Throws ArgumentError unless a is floating.
Array sum_of_squares(const Array& a);

}  // namespace samebytes
