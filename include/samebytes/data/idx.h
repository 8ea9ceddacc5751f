// Reader for IDX files, the format of MNIST (Y. LeCun, C. Cortes, C. Burges, "The MNIST database", file formats): two
// zero bytes, a type code, the number of axes, each size as a big-endian 32-bit number, then the values.
#pragma once

#include <string>

#include "samebytes/host_array.h"

namespace samebytes::data {

// The file's values as [sizes...]. Plain or gzip. Unsigned bytes become u8; signed bytes, 16-bit and 32-bit integers
// i32; float f32; double f64. Throws IoError (offset in the unpacked file) for a missing or damaged file, a wrong magic
// number, and too few or too many values for the sizes.
HostArray read_idx(const std::string& path);

}  // namespace samebytes::data
