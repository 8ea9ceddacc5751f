#include "samebytes/random.h"

#include <cmath>

namespace samebytes {

float Random::normal() {
  constexpr double kTwoPi = 6.283185307179586;
  const double radius = std::sqrt(-2.0 * std::log(1.0 - static_cast<double>(uniform())));  // 1 - u is never 0
  return static_cast<float>(radius * std::cos(kTwoPi * static_cast<double>(uniform())));
}

}  // namespace samebytes
