// Reader for IDX files, the format of MNIST (Y. LeCun, C. Cortes, C. Burges, "The MNIST database", file formats): two
// zero bytes, a type code, the number of axes, each size as a big-endian 32-bit number, then the values.
#pragma once

#include <string>

#include "samebytes/host_array.h"

namespace samebytes::data {

// The file's values as [sizes...]. Plain or gzip. Unsigned bytes come as u8; signed bytes, 16-bit and 32-bit integers
// as i32; float as f32; double as f64. Throws IoError (offset in the unpacked file) for a missing or damaged file, a
// wrong magic number, and values too few or too many for the sizes.
HostArray read_idx(const std::string& path);

}  // namespace samebytes::data
