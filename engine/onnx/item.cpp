#include "onnx/item.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "onnx/traced.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

template <class T>
void copy_in(const Array& array, std::span<const std::byte> bytes) {
  const auto view = array.mutable_host<T>();
  std::memcpy(&*view.begin(), bytes.data(), bytes.size());
}

template <class T>
std::vector<std::byte> copy_out(const Array& array) {
  const auto view = array.host<T>();
  const auto* first = reinterpret_cast<const std::byte*>(&*view.begin());
  return {first, first + static_cast<std::size_t>(array.size()) * sizeof(T)};
}

Array uploaded(const Tensor& tensor) {
  const Shape shape = shape_of(tensor.sizes);
  const Dtype dtype = dtype_of(tensor.type);
  if (shape.size() == 0) return zeros(shape, dtype);
  if (bytes_of(tensor.type) != samebytes::bytes_of(dtype) || tensor.type == Type::u32) {
    std::vector<std::int32_t> narrow;
    for (const std::int64_t value : ints_of(item_of(tensor))) {
      if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max())
        throw ArgumentError("onnx: the integer " + std::to_string(value) + " does not fit in 32 bits on the device");
      narrow.push_back(static_cast<std::int32_t>(value));
    }
    return samebytes::array(std::span<const std::int32_t>(narrow), shape);
  }
  Array result = empty(shape, dtype);
  switch (dtype) {
    case Dtype::f32: copy_in<float>(result, tensor.bytes); break;
    case Dtype::f64: copy_in<double>(result, tensor.bytes); break;
    case Dtype::f16: copy_in<half_bits>(result, tensor.bytes); break;
    case Dtype::bf16: copy_in<bfloat16_bits>(result, tensor.bytes); break;
    case Dtype::i32: copy_in<std::int32_t>(result, tensor.bytes); break;
    case Dtype::i64: copy_in<std::int64_t>(result, tensor.bytes); break;
    case Dtype::u8: copy_in<std::uint8_t>(result, tensor.bytes); break;
    case Dtype::bool_: copy_in<bool>(result, tensor.bytes); break;
  }
  return result;
}

template <class T>
void widen(const Tensor& tensor, std::vector<std::int64_t>& out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, tensor.bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = std::int64_t{value};
  }
}

thread_local std::int64_t most_elements = Shape::kMostElements;
constexpr std::int64_t kMostOfList = std::int64_t{1} << 28;
constexpr std::size_t kMostAxes = 64;

std::int64_t count_below(const Sizes& sizes, std::int64_t most) {
  if (sizes.size() > kMostAxes)
    throw ArgumentError("onnx: a shape has " + std::to_string(sizes.size()) + " axes, expected at most " +
                        std::to_string(kMostAxes));
  std::int64_t n = 1;
  bool is_empty = false;
  for (const std::int64_t size : sizes) {
    if (size < 0 || (size > 0 && n > most / size))
      throw ArgumentError("onnx: a shape has the size " + std::to_string(size) + ", which is negative or too large");
    if (size == 0)
      is_empty = true;
    else
      n *= size;
  }
  return is_empty ? 0 : n;
}

}  // namespace

MostElements::MostElements(std::int64_t most) : before_(std::exchange(most_elements, most)) {}
MostElements::~MostElements() { most_elements = before_; }

bool is_floating(Type type) {
  return type == Type::f32 || type == Type::f64 || type == Type::f16 || type == Type::bf16;
}

bool is_unsigned(Type type) {
  return type == Type::u8 || type == Type::u16 || type == Type::u32 || type == Type::u64 || type == Type::boolean;
}

std::size_t bytes_of(Type type) {
  switch (type) {
    case Type::u8:
    case Type::i8:
    case Type::boolean: return 1;
    case Type::u16:
    case Type::i16:
    case Type::f16:
    case Type::bf16: return 2;
    case Type::f32:
    case Type::i32:
    case Type::u32: return 4;
    case Type::i64:
    case Type::u64:
    case Type::f64: return 8;
    case Type::none: break;
  }
  return 0;
}

std::string name_of(Type type) {
  static constexpr const char* names[] = {"none",   "float",  "uint8", "int8", "uint16",  "int16",
                                          "int32",  "int64",  "",      "bool", "float16", "double",
                                          "uint32", "uint64", "",      "",     "bfloat16"};
  const auto place = static_cast<std::size_t>(type);
  return place < std::size(names) && *names[place] != '\0' ? names[place] : "type " + std::to_string(place);
}

Dtype dtype_of(Type type) {
  switch (type) {
    case Type::f32: return Dtype::f32;
    case Type::f64: return Dtype::f64;
    case Type::f16: return Dtype::f16;
    case Type::bf16: return Dtype::bf16;
    case Type::u8: return Dtype::u8;
    case Type::boolean: return Dtype::bool_;
    case Type::none: throw ArgumentError("onnx: an input that the node needs is left out");
    default: return Dtype::i32;
  }
}

Type type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return Type::f32;
    case Dtype::f64: return Type::f64;
    case Dtype::f16: return Type::f16;
    case Dtype::bf16: return Type::bf16;
    case Dtype::i32: return Type::i32;
    case Dtype::i64: return Type::i64;
    case Dtype::u8: return Type::u8;
    case Dtype::bool_: return Type::boolean;
  }
  return Type::none;
}

std::int64_t count(const Sizes& sizes) { return count_below(sizes, most_elements); }
std::int64_t list_count(const Sizes& sizes) { return count_below(sizes, std::min(most_elements, kMostOfList)); }

Shape shape_of(const Sizes& sizes) { return Shape(std::span<const std::int64_t>(sizes)); }

Sizes sizes_of(const Item& item) {
  if (!item.defined()) throw ArgumentError("onnx: an input that the node needs is left out");
  if (item.host) return item.host->sizes;
  const Shape& shape = item.array.shape();
  Sizes sizes(shape.begin(), shape.end());
  if (item.order.empty()) return sizes;
  Sizes meant(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) meant.at(static_cast<std::size_t>(item.order[i])) = sizes[i];
  return meant;
}

Item item_of(const Array& array, Type type) {
  Item item;
  item.type = type == Type::none ? type_of(array.dtype()) : type;
  item.array = array;
  return item;
}

Item item_of(Tensor tensor) {
  Item item;
  if (tensor.type == Type::boolean)  // any byte but 0 is true
    for (std::byte& byte : tensor.bytes) byte = std::byte{byte != std::byte{0}};
  item.type = tensor.type;
  if (is_floating(tensor.type))
    item.array = uploaded(tensor);
  else
    item.host = std::make_shared<const Tensor>(std::move(tensor));
  return item;
}

std::int64_t wrapped(std::int64_t value, Type type) {
  switch (type) {
    case Type::i8: return static_cast<std::int8_t>(value);
    case Type::u8: return static_cast<std::uint8_t>(value);
    case Type::i16: return static_cast<std::int16_t>(value);
    case Type::u16: return static_cast<std::uint16_t>(value);
    case Type::i32: return static_cast<std::int32_t>(value);
    case Type::u32: return static_cast<std::uint32_t>(value);
    case Type::boolean: return value != 0 ? 1 : 0;
    default: return value;
  }
}

std::int64_t truncated(double value) {
  if (!(value >= -0x1p63 && value < 0x1p63)) return std::isnan(value) || value < 0 ? INT64_MIN : INT64_MAX;
  return static_cast<std::int64_t>(value);
}

bool is_below(std::int64_t a, std::int64_t b, Type type) {
  return type == Type::u64 ? static_cast<std::uint64_t>(a) < static_cast<std::uint64_t>(b) : a < b;
}

Item ints_item(const std::vector<std::int64_t>& values, const Sizes& sizes, Type type) {
  if (is_floating(type) || bytes_of(type) == 0) throw ArgumentError("onnx: expected integers, got " + name_of(type));
  if (count(sizes) != std::ssize(values))
    throw ArgumentError("onnx: expected " + std::to_string(count(sizes)) + " values, got " +
                        std::to_string(values.size()));
  Tensor tensor{type, sizes, std::vector<std::byte>(values.size() * bytes_of(type))};
  const std::size_t width = bytes_of(type);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t value = wrapped(values[i], type);
    std::memcpy(tensor.bytes.data() + i * width, &value, width);
  }
  return item_of(std::move(tensor));
}

Array plain(const Item& item) {
  if (!item.defined()) throw ArgumentError("onnx: an input that the node needs is left out");
  return item.host ? uploaded(*item.host) : stored(item, {});
}

Array permuted(const Array& array, const Order& order) {
  // transpose() takes a list; sizes of an order are at most eight.
  switch (order.size()) {
    case 2: return transpose(array, {order[0], order[1]});
    case 3: return transpose(array, {order[0], order[1], order[2]});
    case 4: return transpose(array, {order[0], order[1], order[2], order[3]});
    case 5: return transpose(array, {order[0], order[1], order[2], order[3], order[4]});
    case 6: return transpose(array, {order[0], order[1], order[2], order[3], order[4], order[5]});
    case 7: return transpose(array, {order[0], order[1], order[2], order[3], order[4], order[5], order[6]});
    case 8: return transpose(array, {order[0], order[1], order[2], order[3], order[4], order[5], order[6], order[7]});
    default: return array;
  }
}

Array stored(const Item& item, const Order& order) {
  if (item.host) return permuted(plain(item), order);
  if (item.order == order) return item.array;
  const Array meant = item.order.empty() ? item.array : permuted(item.array, inverse(item.order));
  return order.empty() ? meant : permuted(meant, order);
}

Item ordered(const Array& stored, const Order& order, Type type) {
  Item item = item_of(stored, type);
  item.order = order;
  return item;
}

Order channels_last(std::size_t rank) {
  Order order{0};
  for (std::size_t i = 2; i < rank; ++i) order.push_back(static_cast<int>(i));
  order.push_back(1);
  return order;
}

Order taps_first(std::size_t rank) {
  Order order;
  for (std::size_t i = 2; i < rank; ++i) order.push_back(static_cast<int>(i));
  order.push_back(1);
  order.push_back(0);
  return order;
}

Order inverse(const Order& order) {
  Order back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) back.at(static_cast<std::size_t>(order[i])) = static_cast<int>(i);
  return back;
}

Tensor on_host(const Item& item) {
  if (!item.defined()) throw ArgumentError("onnx: an input that the node needs is left out");
  if (item.host) return *item.host;
  check_readable(item.array);
  const Array array = contiguous(plain(item));
  Tensor tensor{type_of(array.dtype()), sizes_of(item), {}};
  if (array.size() > 0) {
    switch (array.dtype()) {
      case Dtype::f32: tensor.bytes = copy_out<float>(array); break;
      case Dtype::f64: tensor.bytes = copy_out<double>(array); break;
      case Dtype::f16: tensor.bytes = copy_out<half_bits>(array); break;
      case Dtype::bf16: tensor.bytes = copy_out<bfloat16_bits>(array); break;
      case Dtype::i32: tensor.bytes = copy_out<std::int32_t>(array); break;
      case Dtype::i64: tensor.bytes = copy_out<std::int64_t>(array); break;
      case Dtype::u8: tensor.bytes = copy_out<std::uint8_t>(array); break;
      case Dtype::bool_: tensor.bytes = copy_out<bool>(array); break;
    }
  }
  if (tensor.type == item.type) return tensor;
  Item narrow;
  narrow.type = tensor.type;
  narrow.host = std::make_shared<const Tensor>(std::move(tensor));
  return *ints_item(ints_of(narrow), narrow.host->sizes, item.type).host;
}

std::vector<std::int64_t> ints_of(const Item& item) {
  const Tensor tensor = on_host(item);
  std::vector<std::int64_t> out(static_cast<std::size_t>(list_count(tensor.sizes)));
  switch (tensor.type) {
    case Type::u8:
    case Type::boolean: widen<std::uint8_t>(tensor, out); break;
    case Type::i8: widen<std::int8_t>(tensor, out); break;
    case Type::u16: widen<std::uint16_t>(tensor, out); break;
    case Type::i16: widen<std::int16_t>(tensor, out); break;
    case Type::i32: widen<std::int32_t>(tensor, out); break;
    case Type::u32: widen<std::uint32_t>(tensor, out); break;
    case Type::i64:
    case Type::u64: widen<std::int64_t>(tensor, out); break;
    default: throw ArgumentError("onnx: expected integers, got " + name_of(tensor.type));
  }
  return out;
}

std::vector<double> reals_of(const Item& item) {
  if (is_floating(item.type)) {
    check_readable(item.array);
    if (!item.known) return plain(item).to_vector<double>();
    std::call_once(item.known->once, [&] { item.known->values = plain(item).to_vector<double>(); });
    return item.known->values;
  }
  const auto ints = ints_of(item);
  return {ints.begin(), ints.end()};
}

Item moved(const Item& item, const Sizes& sizes, std::span<const std::int64_t> from) {
  if (count(sizes) != static_cast<std::int64_t>(from.size())) throw ArgumentError("onnx: sizes do not match");
  const std::int64_t n = count(sizes_of(item));
  for (const std::int64_t place : from)
    if (place < 0 || place >= n)
      throw ArgumentError("onnx: the value " + std::to_string(place) + " of " + std::to_string(n));
  if (item.host) {
    const Tensor& source = *item.host;
    const std::size_t width = bytes_of(source.type);
    Tensor tensor{source.type, sizes, std::vector<std::byte>(from.size() * width)};
    for (std::size_t i = 0; i < from.size(); ++i)
      std::memcpy(tensor.bytes.data() + i * width, source.bytes.data() + static_cast<std::size_t>(from[i]) * width,
                  width);
    return item_of(std::move(tensor));
  }
  const Array source = plain(item);
  if (from.empty()) return item_of(zeros(shape_of(sizes), source.dtype()), item.type);
  const Array index = plain(ints_item({from.begin(), from.end()}, {static_cast<std::int64_t>(from.size())}));
  return item_of(reshape(take(reshape(source, {-1}), index), shape_of(sizes)), item.type);
}

Sizes broadcast(const Sizes& a, const Sizes& b) {
  Sizes result(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      throw ArgumentError("onnx: sizes " + std::to_string(x) + " and " + std::to_string(y) + " do not broadcast");
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  count(result);
  return result;
}

std::vector<std::int64_t> strides_of(const Sizes& sizes) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    // Of a tensor without values the others may multiply to more than there are numbers.
    if (__builtin_mul_overflow(stride, std::max<std::int64_t>(sizes[i], 1), &stride)) stride = Shape::kMostElements;
  }
  return strides;
}

std::vector<std::int64_t> positions(const Sizes& of, const Sizes& sizes) {
  const auto out_strides = strides_of(sizes), in_strides = strides_of(of);
  std::vector<std::int64_t> from(static_cast<std::size_t>(list_count(sizes)));
  const std::size_t skip = sizes.size() - of.size();
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::int64_t at = 0;
    for (std::size_t axis = skip; axis < sizes.size(); ++axis) {
      const std::int64_t place = static_cast<std::int64_t>(i) / out_strides[axis] % sizes[axis];
      if (of[axis - skip] != 1) at += place * in_strides[axis - skip];
    }
    from[i] = at;
  }
  return from;
}

}  // namespace samebytes::onnx
