// The inverse of a scale, as what quantises multiplies by it.
#pragma once

#include <cmath>

namespace samebytes::detail {

// 0 for 0 and for scales so small that their inverse is not finite: then all values become 0.
inline float inverse_of(float scale) {
  const float inverse = scale != 0 ? 1 / scale : 0;
  return std::isfinite(inverse) ? inverse : 0;
}

}  // namespace samebytes::detail
