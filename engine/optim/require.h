// The check of a number among options: optimizers, schedules and what watches a training share it.
#pragma once

#include <string>

#include "samebytes/error.h"

namespace samebytes::optim {

// Throws ArgumentError "<who>: <need>, <came> came" unless ok.
inline void require(bool ok, const char* who, const char* need, double came) {
  if (!ok) throw ArgumentError(std::string(who) + ": " + need + ", " + std::to_string(came) + " came");
}

}  // namespace samebytes::optim
