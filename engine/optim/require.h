// The check of a number among options: optimizers, schedules and what watches a training share it.
#pragma once

#include <string>

#include "samebytes/error.h"

namespace samebytes::optim {

// Throws ArgumentError "<who>: <need>, got <value>" unless ok.
inline void require(bool ok, const char* who, const char* need, double value) {
  if (!ok) throw ArgumentError(std::string(who) + ": " + need + ", got " + std::to_string(value));
}

}  // namespace samebytes::optim
