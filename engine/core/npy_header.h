// The header of an .npy file (numpy/lib/format.py, versions 1 to 3), whatever its values become: arrays in
// data/npy.cpp, exact tensors of ONNX models in io/tensor_npy.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace samebytes::detail {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

struct NpyHeader {
  std::string descr;                // NumPy's name of the type, with the order of bytes: "<f4"
  bool fortran = false;             // first index fastest
  std::vector<std::int64_t> sizes;  // at most eight
  std::size_t begin = 0;            // of the header's text in the file, for errors
  std::size_t start = 0;            // of the values
};

// Reads the header of a file whose bytes are `file`. Throws IoError for another format and a header that cannot be
// read.
NpyHeader read_npy_header(const std::string& path, std::span<const std::byte> file);

// Whether values of `width` bytes lie in the file with their first byte last on this machine, or with the first index
// fastest, where either makes a difference.
bool is_big_endian(const NpyHeader& header, std::size_t width);
bool is_first_index_fastest(const NpyHeader& header);

// Throws IoError unless just the values of the header's sizes, of `width` bytes each, follow it.
void check_npy_size(const std::string& path, std::span<const std::byte> file, const NpyHeader& header,
                    std::size_t width);

// The values behind the header, of `width` bytes each, as this machine has them and with the last index fastest,
// whatever the order of bytes and of indices in the file.
std::vector<std::byte> npy_values(std::span<const std::byte> file, const NpyHeader& header, std::size_t width);

// The bytes before the values of a file of version 1, padded as NumPy does, so that the values can be mapped.
std::string npy_header_text(std::string_view descr, std::span<const std::int64_t> sizes);

}  // namespace samebytes::detail
