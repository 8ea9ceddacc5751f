// What the files named without_PART.cpp throw: they stand in for a part that the build left out.
#pragma once

#include <string>

#include "samebytes/error.h"

namespace samebytes::detail {

// "image: this build of Samebytes has no PNG and JPEG; configure it with -DSAMEBYTES_IMAGES=ON (packages libpng-dev,
// ...)"
[[noreturn]] inline void throw_missing(const std::string& who, const std::string& what, const std::string& option,
                                       const std::string& packages) {
  throw Error(who + ": this build of Samebytes has no " + what + "; configure it with -D" + option + "=ON (" +
              packages + ")");
}

}  // namespace samebytes::detail
