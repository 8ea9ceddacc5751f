// Whether values are finite, found on the device.
#pragma once

#include <initializer_list>
#include <span>

#include "samebytes/array.h"

namespace samebytes {

// bool [1]: true where no element of any of the arrays is NaN or infinite; true of none. Throws ArgumentError for an
// array that is not floating.
Array all_finite(std::span<const Array> arrays);
inline Array all_finite(std::initializer_list<Array> arrays) {
  return all_finite(std::span<const Array>(arrays.begin(), arrays.size()));
}

}  // namespace samebytes
