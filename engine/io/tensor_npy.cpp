#include "samebytes/io/tensor_npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <regex>

#include "samebytes/error.h"
#include "samebytes/io/files.h"
#include "samebytes/ops.h"

namespace samebytes::io {
namespace {

using onnx::Tensor;
using onnx::Type;

struct Kind {
  const char* text;  // in the header, without the order of bytes
  Type type;
  std::size_t bytes;
};
constexpr Kind kKinds[] = {{"f4", Type::f32, 4}, {"f8", Type::f64, 8}, {"i1", Type::i8, 1},     {"i2", Type::i16, 2},
                           {"i4", Type::i32, 4}, {"i8", Type::i64, 8}, {"u1", Type::u8, 1},     {"u2", Type::u16, 2},
                           {"u4", Type::u32, 4}, {"u8", Type::u64, 8}, {"b1", Type::boolean, 1}};
constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kAlignment = 64;

template <class T>
Array uploaded(const Tensor& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return array(std::span<const T>(values), Shape(std::span<const std::int64_t>(tensor.sizes)));
}

template <class T>
Tensor downloaded(const Array& array, Type type) {
  const std::vector<T> values = contiguous(array).to_vector<T>();
  const auto* first = reinterpret_cast<const std::byte*>(values.data());
  return {type, {array.shape().begin(), array.shape().end()}, {first, first + values.size() * sizeof(T)}};
}

}  // namespace

Tensor read_tensor_npy(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  const auto fail = [&](const std::string& why, std::size_t offset) -> void {
    throw IoError(fmt::format("{}: {} at byte {}", path, why, offset), path, static_cast<std::int64_t>(offset));
  };
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic) || text.size() < 12) fail("expected NumPy's \\x93NUMPY", 0);
  const std::size_t width = text[6] == 1 ? 2 : 4, begin = 8 + width;
  std::size_t length = 0;
  for (std::size_t i = 0; i < width; ++i) length |= std::size_t{static_cast<unsigned char>(text[8 + i])} << 8 * i;
  if (length > text.size() - begin) fail("the header ends beyond the file", 8);
  const std::string header(text.substr(begin, length));
  static const std::regex form(
      R"(^\{'descr': '([<|=])(\w\d)', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), *\}\s*$)");
  std::smatch match;
  if (!std::regex_match(header, match, form))
    fail("expected a header of little-endian numbers, got " + header.substr(0, 80), begin);
  if (match[3] == "True") fail("the array is in Fortran's order; save numpy.ascontiguousarray(x)", begin);
  const auto kind =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& one) { return match[2] == one.text; });
  if (kind == std::end(kKinds)) fail("its numbers are " + match[2].str() + ", which is not supported", begin);
  Tensor tensor{kind->type, {}, {}};
  const std::size_t rest = text.size() - begin - length;
  std::size_t count = 1;
  const std::string sizes = match[4];
  static const std::regex number("\\d+");
  for (std::sregex_iterator at(sizes.begin(), sizes.end(), number), end; at != end; ++at) {
    if (at->length() > 18) fail("a size is too large", begin);
    tensor.sizes.push_back(std::stoll(at->str()));
    const auto size = static_cast<std::size_t>(tensor.sizes.back());
    if (size > 0 && count > rest / size) fail("the shape is larger than the file", begin);
    count *= size;
  }
  if (count * kind->bytes != rest)
    fail(fmt::format("expected {} bytes of numbers, got {}", count * kind->bytes, rest), begin + length);
  tensor.bytes.assign(bytes.end() - static_cast<std::ptrdiff_t>(rest), bytes.end());
  return tensor;
}

void write_tensor_npy(const std::string& path, const Tensor& tensor) {
  const auto kind =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& one) { return one.type == tensor.type; });
  if (kind == std::end(kKinds)) throw ArgumentError("npy: " + onnx::name_of(tensor.type) + " has no form in NumPy");
  std::string sizes;
  for (const std::int64_t size : tensor.sizes) sizes += fmt::format("{},", size);
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   kind->bytes == 1 ? '|' : '<', kind->text, sizes);
  header.resize((header.size() + 1 + 10 + kAlignment - 1) / kAlignment * kAlignment - 10 - 1, ' ');
  header += '\n';
  std::string start(kMagic);
  start += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  AtomicFile file(path);
  file.write(start + header);
  file.write(tensor.bytes);
  file.commit();
}

onnx::Value value_of(const Tensor& tensor) {
  if (tensor.type == Type::f32) return uploaded<float>(tensor);
  if (tensor.type == Type::f64) return uploaded<double>(tensor);
  return tensor;
}

Tensor tensor_of(const onnx::Value& value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) return *tensor;
  const Array& array = std::get<Array>(value);
  return array.dtype() == f64 ? downloaded<double>(array, Type::f64) : downloaded<float>(array, Type::f32);
}

}  // namespace samebytes::io
