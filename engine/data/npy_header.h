// An .npy file as an array: what its header (core/npy_header.h) means for the bytes behind it.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/npy_header.h"
#include "samebytes/dtype.h"
#include "samebytes/shape.h"

namespace samebytes::detail {

struct NpyLayout {
  NpyHeader header;
  Shape shape;
  Dtype dtype = f32;      // dtype after conversion
  std::size_t width = 4;  // bytes of one value in the file
  char kind = 'f';        // numpy's letter
  bool widen = false;     // an integer of another width, which becomes i32
};

// Reads the header of a file whose bytes are `file`. Throws IoError for another format, a header or type that cannot be
// read, and too few or too many values for the shape.
NpyLayout read_npy_layout(const std::string& path, std::span<const std::byte> file);

}  // namespace samebytes::detail
