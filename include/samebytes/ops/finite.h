// Checks on the device whether values are finite.
#pragma once

#include "samebytes/array.h"

namespace samebytes {

// bool [1]: true if no element of any array is NaN or infinite; also true for an empty list. Throws ArgumentError for
// an array that is not floating.
Array all_finite(const Inputs& arrays);

}  // namespace samebytes
