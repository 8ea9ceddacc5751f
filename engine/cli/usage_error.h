// UsageError: the command line asks for something that there is not; main() ends with status 2.
#pragma once

#include <stdexcept>

namespace samebytes::cli {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;
inline constexpr int kInterrupted = 130;

}  // namespace samebytes::cli
