// What readers of files share: the one wording of their errors - who read it, where, what was expected, what was there
// - and the size of an array that a damaged header may have made up.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "samebytes/error.h"

namespace samebytes::detail {

// "idx: data/x.gz: at byte 4: expected 60000 labels, found 59999". Without an offset (-1) that part is left out.
[[noreturn]] inline void throw_io(const std::string& reader, const std::string& path, std::int64_t offset,
                                  const std::string& expected, const std::string& found) {
  const std::string place = offset < 0 ? "" : "at byte " + std::to_string(offset) + ": ";
  throw IoError(reader + ": " + path + ": " + place + "expected " + expected + ", found " + found, path, offset);
}

// Bytes of values of `width` bytes with these sizes; a number that no file has where the product, zeros aside, does not
// fit. Requires: sizes of 0 or more.
inline std::uint64_t bytes_of_sizes(std::span<const std::int64_t> sizes, std::uint64_t width) {
  constexpr std::uint64_t kTooMuch = std::uint64_t{1} << 62;
  std::uint64_t bytes = width;
  bool is_empty = false;
  for (const std::int64_t size : sizes) {
    const auto n = static_cast<std::uint64_t>(size);
    if (n == 0) is_empty = true;
    if (n > 0 && bytes >= kTooMuch / n) return kTooMuch;
    if (n > 0) bytes *= n;
  }
  return is_empty ? 0 : bytes;
}

}  // namespace samebytes::detail
