// Measuring a constant of a cost model.
#pragma once

#include <algorithm>
#include <limits>

#include "profile/recorder.h"

namespace samebytes::detail {

// Of several rounds, since other work on the machine only adds.
template <class Round>
double least_seconds(int rounds, Round&& round) {
  double least = std::numeric_limits<double>::infinity();
  for (int r = 0; r < rounds; ++r) {
    const double start = steady_seconds();
    round();
    least = std::min(least, steady_seconds() - start);
  }
  return least;
}

}  // namespace samebytes::detail
