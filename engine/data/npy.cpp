#include "samebytes/data/npy.h"

#include <cstring>

#include "core/io_error.h"
#include "core/npy_header.h"
#include "data/npy_header.h"
#include "samebytes/io/files.h"

namespace samebytes::data {
HostArray read_npy(const std::string& path) {
  const std::vector<std::byte> file = io::read_file(path);
  const detail::NpyLayout layout = detail::read_npy_layout(path, file);
  const std::size_t width = layout.width;
  std::vector<std::byte> values = detail::npy_values(file, layout.header, width);
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
