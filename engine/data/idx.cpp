#include "samebytes/data/idx.h"

#include <cstdio>

#include "core/io_error.h"
#include "samebytes/io/files.h"

namespace samebytes::data {
namespace {

std::uint64_t big_endian(const std::byte* bytes, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

std::string hex(std::uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%08llx", static_cast<unsigned long long>(value));
  return text;
}

template <class Stored, class Bits, class T>
void decode(const std::byte* src, std::span<T> dst) {
  for (std::size_t i = 0; i < dst.size(); ++i) {
    const auto bits = static_cast<Bits>(big_endian(src + i * sizeof(Bits), sizeof(Bits)));
    Stored value;
    std::memcpy(&value, &bits, sizeof value);
    dst[i] = static_cast<T>(value);  // NOLINT(bugprone-signed-char-misuse): i8 keeps its sign
  }
}

}  // namespace

HostArray read_idx(const std::string& path) {
  const std::vector<std::byte> file = io::read_file(path);
  if (file.size() < 4)
    detail::throw_io("idx", path, static_cast<std::int64_t>(file.size()), "a magic number of 4 bytes",
                     "the end of the file");
  const std::uint64_t magic = big_endian(file.data(), 4);
  const auto type = static_cast<unsigned>(magic >> 8 & 0xff);
  const auto rank = static_cast<std::size_t>(magic & 0xff);
  std::size_t width = 0;
  Dtype dtype = u8;
  switch (type) {
    case 0x08: width = 1, dtype = u8; break;
    case 0x09: width = 1, dtype = i32; break;
    case 0x0B: width = 2, dtype = i32; break;
    case 0x0C: width = 4, dtype = i32; break;
    case 0x0D: width = 4, dtype = f32; break;
    case 0x0E: width = 8, dtype = f64; break;
    default: break;
  }
  if (magic >> 16 != 0 || width == 0 || rank > Shape::kMaxRank)
    detail::throw_io("idx", path, 0,
                     "a magic number 0x0000TTNN with type TT 08, 09, 0b, 0c, 0d or 0e and NN 0 to 8 axes", hex(magic));
  const std::size_t head = 4 + 4 * rank;
  if (file.size() < head)
    detail::throw_io("idx", path, static_cast<std::int64_t>(file.size()), std::to_string(rank) + " sizes of 4 bytes",
                     "the end of the file");
  std::vector<std::int64_t> sizes;
  for (std::size_t axis = 0; axis < rank; ++axis)
    sizes.push_back(static_cast<std::int64_t>(big_endian(file.data() + 4 + 4 * axis, 4)));
  const std::uint64_t need = detail::bytes_of_sizes(sizes, width);
  if (file.size() - head != need)
    detail::throw_io("idx", path, static_cast<std::int64_t>(file.size()),
                     std::to_string(need) + " bytes of values for sizes " + detail::text_of_sizes(sizes),
                     std::to_string(file.size() - head));

  HostArray array(detail::shape_of_sizes("idx", path, 4, sizes), dtype);
  const std::byte* src = file.data() + head;
  switch (type) {
    case 0x08:
      if (need > 0) std::memcpy(array.bytes.data(), src, need);
      break;
    case 0x09: decode<std::int8_t, std::uint8_t>(src, array.as<std::int32_t>()); break;
    case 0x0B: decode<std::int16_t, std::uint16_t>(src, array.as<std::int32_t>()); break;
    case 0x0C: decode<std::int32_t, std::uint32_t>(src, array.as<std::int32_t>()); break;
    case 0x0D: decode<float, std::uint32_t>(src, array.as<float>()); break;
    default: decode<double, std::uint64_t>(src, array.as<double>()); break;
  }
  return array;
}

}  // namespace samebytes::data
