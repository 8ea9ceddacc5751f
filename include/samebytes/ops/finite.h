// Checks on the device whether values are finite.
#pragma once

#include <initializer_list>
#include <span>

#include "samebytes/array.h"

namespace samebytes {

// bool [1]: true if no element of any array is NaN or infinite; also true for an empty list. Throws ArgumentError for
// an array that is not floating.
Array all_finite(std::span<const Array> arrays);
inline Array all_finite(std::initializer_list<Array> arrays) {
  return all_finite(std::span<const Array>(arrays.begin(), arrays.size()));
}

}  // namespace samebytes
