// The one wording of errors about files: who read it, where, what was expected, what was there.
#pragma once

#include <cstdint>
#include <string>

#include "samebytes/error.h"

namespace samebytes::detail {

// "idx: data/x.gz: at byte 4: expected 60000 labels, found 59999". Without an offset (-1) that part is left out.
[[noreturn]] inline void throw_io(const std::string& reader, const std::string& path, std::int64_t offset,
                                  const std::string& expected, const std::string& found) {
  const std::string place = offset < 0 ? "" : "at byte " + std::to_string(offset) + ": ";
  throw IoError(reader + ": " + path + ": " + place + "expected " + expected + ", found " + found, path, offset);
}

}  // namespace samebytes::detail
