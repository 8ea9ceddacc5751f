// NumPy's file format, versions 1.0 to 3.0 (numpy.lib.format): one dense array with its type and shape.
#pragma once

#include <string>

#include "samebytes/host_array.h"

namespace samebytes::data {

// Plain or gzip. Maps types: <f4 f32, <f2 f16, <f8 f64, <i4 i32, <i8 i64, |u1 u8, |b1 bool, and V2 (what ml_dtypes
// writes for bfloat16) bf16; <i2, <u2 and |i1 become i32. Big-endian files are swapped, arrays in Fortran order are
// reordered. Throws IoError for a missing, truncated or damaged file, an unsupported type (structures, strings,
// objects), and more than 8 axes.
HostArray read_npy(const std::string& path);

// Writes version 1.0, little-endian, C order, atomically. Throws IoError.
void write_npy(const std::string& path, const HostArray& array);

}  // namespace samebytes::data
