// What readers of files share: the one wording of their errors - who read it, where, what was expected, what was there
// - and the size of an array that a damaged header may have made up.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "samebytes/error.h"
#include "samebytes/shape.h"

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

// "[3, 4]", of sizes that may be no shape.
inline std::string text_of_sizes(std::span<const std::int64_t> sizes) {
  std::string text = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

// The shape with these sizes, at most eight; IoError where it would have too many elements.
inline Shape shape_of_sizes(const std::string& reader, const std::string& path, std::int64_t offset,
                            std::span<const std::int64_t> sizes) {
  try {
    return Shape(sizes);
  } catch (const ArgumentError&) {
    throw_io(reader, path, offset, "at most 2^56 elements", "sizes " + text_of_sizes(sizes));
  }
}

}  // namespace samebytes::detail
