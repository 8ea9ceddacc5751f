#include "samebytes/data/npy.h"

#include <algorithm>
#include <bit>

#include "core/io_error.h"
#include "core/npy_header.h"
#include "data/npy_header.h"
#include "samebytes/io/files.h"

namespace samebytes::data {
namespace {

static_assert(std::endian::native == std::endian::little, "values are stored as this machine has them");

// Reorders values from first index fastest to last index fastest.
std::vector<std::byte> from_fortran(std::span<const std::byte> src, const Shape& shape, std::size_t width) {
  std::vector<std::byte> dst(src.size());
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()), 0), stride(index.size(), 1);
  for (int axis = shape.rank() - 2; axis >= 0; --axis)
    stride[static_cast<std::size_t>(axis)] = stride[static_cast<std::size_t>(axis) + 1] * shape[axis + 1];
  const std::int64_t count = shape.size();
  std::int64_t to = 0;
  for (std::int64_t from = 0; from < count; ++from) {
    std::memcpy(dst.data() + static_cast<std::size_t>(to) * width, src.data() + static_cast<std::size_t>(from) * width,
                width);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      to += stride[a];
      if (++index[a] < shape[axis]) break;
      to -= stride[a] * shape[axis];
      index[a] = 0;
    }
  }
  return dst;
}

}  // namespace

HostArray read_npy(const std::string& path) {
  const std::vector<std::byte> file = io::read_file(path);
  const detail::NpyLayout layout = detail::read_npy_layout(path, file);
  const std::size_t width = layout.width;
  std::vector<std::byte> values(file.begin() + static_cast<std::ptrdiff_t>(layout.start), file.end());
  if (layout.big_endian)
    for (std::size_t i = 0; i < values.size(); i += width)
      std::reverse(values.begin() + static_cast<std::ptrdiff_t>(i),
                   values.begin() + static_cast<std::ptrdiff_t>(i + width));
  if (layout.fortran) values = from_fortran(values, layout.shape, width);
  if (!layout.widen) {
    HostArray array;
    array.shape = layout.shape;
    array.dtype = layout.dtype;
    array.bytes = std::move(values);
    return array;
  }
  HostArray array(layout.shape, i32);
  const std::span<std::int32_t> dst = array.as<std::int32_t>();
  for (std::size_t i = 0; i < dst.size(); ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, values.data() + i * width, width);
    const unsigned unused = 64 - 8 * static_cast<unsigned>(width);
    const auto value =
        layout.kind == 'u' ? static_cast<std::int64_t>(bits) : static_cast<std::int64_t>(bits << unused) >> unused;
    dst[i] = static_cast<std::int32_t>(value);
  }
  return array;
}

void write_npy(const std::string& path, const HostArray& array) {
  if (array.bytes.size() != static_cast<std::size_t>(array.size()) * bytes_of(array.dtype))
    throw ArgumentError("write_npy: shape " + array.shape.to_string() + " does not go with " +
                        std::to_string(array.bytes.size()) + " bytes of " + std::string(name_of(array.dtype)));
  const char* descr = "";
  switch (array.dtype) {
    case Dtype::f32: descr = "<f4"; break;
    case Dtype::f16: descr = "<f2"; break;
    case Dtype::bf16: descr = "<V2"; break;
    case Dtype::f64: descr = "<f8"; break;
    case Dtype::i32: descr = "<i4"; break;
    case Dtype::i64: descr = "<i8"; break;
    case Dtype::u8: descr = "|u1"; break;
    case Dtype::bool_: descr = "|b1"; break;
  }
  io::AtomicFile file(path);
  file.write(detail::npy_header_text(descr, std::span(array.shape.begin(), array.shape.end())));
  file.write(array.bytes);
  file.commit();
}

}  // namespace samebytes::data
