#include "samebytes/io/tensor_npy.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/io_error.h"
#include "core/npy_header.h"
#include "samebytes/error.h"
#include "samebytes/io/files.h"
#include "samebytes/ops.h"

namespace samebytes::io {
namespace {

using onnx::Tensor;
using onnx::Type;

struct NpyKind {
  const char* text;  // in the header, without the order of bytes
  Type type;
  std::size_t bytes;
};
// NumPy has no bfloat16; packages that add it write two bytes without a meaning.
constexpr NpyKind kNpyKinds[] = {
    {"f4", Type::f32, 4}, {"f8", Type::f64, 8}, {"f2", Type::f16, 2},    {"V2", Type::bf16, 2}, {"i1", Type::i8, 1},
    {"i2", Type::i16, 2}, {"i4", Type::i32, 4}, {"i8", Type::i64, 8},    {"u1", Type::u8, 1},   {"u2", Type::u16, 2},
    {"u4", Type::u32, 4}, {"u8", Type::u64, 8}, {"b1", Type::boolean, 1}};

template <class T>
Array uploaded(const Tensor& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return array(std::span<const T>(values), Shape(std::span<const std::int64_t>(tensor.sizes)));
}

template <class T>
Tensor downloaded(const Array& array, Type type) {
  Tensor tensor{type, {array.shape().begin(), array.shape().end()}, {}};
  if (array.size() == 0) return tensor;
  const Array dense = contiguous(array);
  const auto values = dense.host<T>();
  const auto* first = reinterpret_cast<const std::byte*>(&*values.begin());
  tensor.bytes.assign(first, first + static_cast<std::size_t>(array.size()) * sizeof(T));
  return tensor;
}

}  // namespace

Tensor read_tensor_npy(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  const detail::NpyHeader header = detail::read_npy_header(path, bytes);
  const auto begin = static_cast<std::int64_t>(header.begin);
  const std::string_view descr = header.descr;
  const auto kind = std::find_if(std::begin(kNpyKinds), std::end(kNpyKinds),
                                 [&](const NpyKind& one) { return descr.size() == 3 && descr.substr(1) == one.text; });
  if (kind == std::end(kNpyKinds))
    detail::throw_io("npy", path, begin, "numbers of 1 to 8 bytes or bools", "'" + header.descr + "'");
  detail::check_npy_size(path, bytes, header, kind->bytes);
  return {kind->type, header.sizes, detail::npy_values(bytes, header, kind->bytes)};
}

void write_tensor_npy(const std::string& path, const Tensor& tensor) {
  const auto kind = std::find_if(std::begin(kNpyKinds), std::end(kNpyKinds),
                                 [&](const NpyKind& one) { return one.type == tensor.type; });
  if (kind == std::end(kNpyKinds)) throw ArgumentError("npy: " + onnx::name_of(tensor.type) + " has no form in NumPy");
  const std::string descr = (kind->bytes == 1 ? "|" : "<") + std::string(kind->text);
  AtomicFile file(path);
  file.write(detail::npy_header_text(descr, tensor.sizes));
  file.write(tensor.bytes);
  file.commit();
}

onnx::Value value_of(const Tensor& tensor) {
  if (tensor.type == Type::f32) return uploaded<float>(tensor);
  if (tensor.type == Type::f64) return uploaded<double>(tensor);
  if (tensor.type == Type::f16) return uploaded<half_bits>(tensor);
  if (tensor.type == Type::bf16) return uploaded<bfloat16_bits>(tensor);
  return tensor;
}

Tensor tensor_of(const onnx::Value& value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) return *tensor;
  const Array& array = std::get<Array>(value);
  if (array.dtype() == f64) return downloaded<double>(array, Type::f64);
  if (array.dtype() == f16) return downloaded<half_bits>(array, Type::f16);
  return array.dtype() == bf16 ? downloaded<bfloat16_bits>(array, Type::bf16) : downloaded<float>(array, Type::f32);
}

}  // namespace samebytes::io
