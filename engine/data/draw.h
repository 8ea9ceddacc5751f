// A random number between two bounds, for random images and light curves.
#pragma once

#include "samebytes/random.h"

namespace samebytes::detail {

inline double draw(Random& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random.uniform());
}

}  // namespace samebytes::detail
