// A line of the user's code: where an array was asked for. Errors of what fills it name that line.
#pragma once

#include <string>

namespace samebytes::detail {

struct SourceLine {
  const char* file = nullptr;  // null: the library's own work
  int line = 0;
  std::string text() const { return file ? std::string(file) + ":" + std::to_string(line) : std::string(); }
};

}  // namespace samebytes::detail
