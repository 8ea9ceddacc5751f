// Member functions of Array: handles, evaluation and host access.
#include "samebytes/array.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "graph/op.h"
#include "graph/overwrite.h"
#include "graph/recording.h"
#include "graph/working_copy.h"
#include "samebytes/ops.h"

namespace samebytes {

using detail::Node;
using detail::NodePtr;

Array::Array(NodePtr node) : node_(std::move(node)) {
  if (node_) node_->handles.fetch_add(1, std::memory_order_relaxed);
}
Array::Array(const Array& other) : Array(other.node_) {}
Array& Array::operator=(const Array& other) & {
  if (this != &other) *this = Array(other);
  return *this;
}
Array& Array::operator=(Array&& other) & noexcept {
  Array taken(std::move(other));
  std::swap(node_, taken.node_);
  return *this;
}
Array::~Array() {
  if (node_) node_->handles.fetch_sub(1, std::memory_order_relaxed);
}

namespace {

const Node& used(const NodePtr& node, const char* what) {
  if (!node) throw ArgumentError(std::string(what) + ": an empty array handle was used");
  return *node;
}

void evaluate(std::span<const NodePtr> roots, const char* what) {
  if (roots.empty()) return;
  const detail::ContextPtr context = roots[0]->context;
  for (const NodePtr& root : roots)
    if (root->context != context) throw ArgumentError(std::string(what) + ": the arrays belong to two engines");
  context->check_alive(what);
  const std::lock_guard lock(context->mutex);
  std::vector<Array> companions;
  for (const NodePtr& root : roots)
    if (root->op && !root->has_value)
      if (Array companion = root->op->companion(*root); companion.defined()) companions.push_back(std::move(companion));
  if (companions.empty()) {
    context->evaluator->evaluate(roots);
    return;
  }
  std::vector<NodePtr> all(roots.begin(), roots.end());
  for (const Array& companion : companions) all.push_back(companion.node());
  context->evaluator->evaluate(all);
  for (const NodePtr& root : roots) detail::note_overwritten(*root);
}

float half_to_float(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
  const std::uint32_t exponent = (h >> 10) & 31u, mantissa = h & 1023u;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -magnitude : magnitude;
  }
  const std::uint32_t bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | (mantissa << 13);
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

float bfloat16_to_float(std::uint16_t b) {
  const std::uint32_t bits = static_cast<std::uint32_t>(b) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// As static_cast; a number beyond the whole ones of T becomes the nearest of them, and NaN the least.
template <class T, class Value>
T nearest(Value value) {
  if constexpr (std::is_floating_point_v<Value> && std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using Limits = std::numeric_limits<T>;
    if (!(value > static_cast<Value>(Limits::min()))) return Limits::min();
    if (value >= static_cast<Value>(Limits::max())) return Limits::max();
  }
  return static_cast<T>(value);
}

}  // namespace

const Shape& Array::shape() const { return used(node_, "shape").shape; }
Dtype Array::dtype() const { return used(node_, "dtype").dtype; }
int Array::device() const { return used(node_, "device").device; }

const Array& Array::eval() const {
  used(node_, "eval");
  evaluate(std::span<const NodePtr>(&node_, 1), "eval");
  return *this;
}

const Array& Array::wait() const {
  eval();
  if (const auto& storage = node_->base().storage) storage->wait();
  return *this;
}

void eval(std::span<const Array> arrays) {
  std::vector<NodePtr> roots;
  roots.reserve(arrays.size());
  for (const Array& array : arrays) {
    used(array.node(), "eval");
    roots.push_back(array.node());
  }
  evaluate(roots, "eval");
}

double Array::value() const {
  if (used(node_, "value").shape.size() != 1)
    throw ArgumentError("value: needs an array of one element, this is " + detail::describe(*this));
  return to_vector<double>()[0];
}

void Array::check_type(Dtype asked) const {
  used(node_, "host");
  if (asked != node_->dtype)
    throw ArgumentError("host: a view of " + std::string(name_of(asked)) + " was asked for, the array is " +
                        detail::describe(*this));
}

template <class T>
std::vector<T> Array::to_vector() const {
  used(node_, "to_vector");
  const Array dense = node_->is_dense() ? *this : contiguous(*this);
  const std::size_t n = static_cast<std::size_t>(size());
  const detail::Borrow borrow(dense, false, __builtin_FILE(), __builtin_LINE());
  std::vector<T> values(n);
  const auto fill = [&](auto* source, auto&& convert) {
    for (std::size_t i = 0; i < n; ++i) values[i] = nearest<T>(convert(source[i]));
  };
  const auto same = [](auto v) { return v; };
  switch (dtype()) {
    case Dtype::f32: fill(static_cast<const float*>(borrow.data()), same); break;
    case Dtype::f64: fill(static_cast<const double*>(borrow.data()), same); break;
    case Dtype::i32: fill(static_cast<const std::int32_t*>(borrow.data()), same); break;
    case Dtype::i64: fill(static_cast<const std::int64_t*>(borrow.data()), same); break;
    case Dtype::u8: fill(static_cast<const std::uint8_t*>(borrow.data()), same); break;
    case Dtype::bool_:
      fill(static_cast<const std::uint8_t*>(borrow.data()), [](std::uint8_t v) { return v != 0; });
      break;
    case Dtype::f16: fill(static_cast<const std::uint16_t*>(borrow.data()), half_to_float); break;
    case Dtype::bf16: fill(static_cast<const std::uint16_t*>(borrow.data()), bfloat16_to_float); break;
  }
  return values;
}
template std::vector<float> Array::to_vector<float>() const;
template std::vector<double> Array::to_vector<double>() const;
template std::vector<std::int32_t> Array::to_vector<std::int32_t>() const;
template std::vector<std::uint8_t> Array::to_vector<std::uint8_t>() const;
template std::vector<std::int64_t> Array::to_vector<std::int64_t>() const;
template std::vector<bool> Array::to_vector<bool>() const;

std::string Array::to_string() const {
  constexpr std::int64_t kShown = 8;  // values of each axis; "..." stands for the rest
  const bool is_whole = !is_floating(dtype());
  const std::vector<double> numbers = is_whole ? std::vector<double>() : to_vector<double>();
  const std::vector<std::int64_t> wholes = is_whole ? to_vector<std::int64_t>() : std::vector<std::int64_t>();
  std::string text = detail::describe(*this) + " ";
  const Shape& s = shape();
  const detail::Strides strides = detail::dense_strides(s);
  const std::function<void(int, std::int64_t)> print = [&](int axis, std::int64_t at) {
    if (axis == s.rank()) {
      if (is_whole) {
        text += std::to_string(wholes[static_cast<std::size_t>(at)]);
        return;
      }
      char number[32];
      const double value = numbers[static_cast<std::size_t>(at)];
      if (std::isnan(value)) {  // without the sign that a printf may give it
        text += "nan";
        return;
      }
      std::snprintf(number, sizeof number, "%g", value);
      text += number;
      return;
    }
    text += "{";
    for (std::int64_t i = 0; i < s[axis]; ++i) {
      if (i) text += ", ";
      if (i == kShown) {
        text += "...";
        break;
      }
      print(axis + 1, at + i * strides[axis]);
    }
    text += "}";
  };
  print(0, 0);
  return text;
}

namespace detail {

struct Borrow::State {
  StoragePtr storage;
  std::shared_ptr<Context> context;  // keeps the runtime of the storage alive
  std::uint64_t id = 0;
};

namespace {
thread_local std::uint64_t reads_here = 0;
}

std::uint64_t host_reads() { return reads_here; }

Borrow::Borrow(const Array& array, bool writes, const char* file, int line) {
  reads_here += writes ? 0 : 1;
  const NodePtr& node = array.node();
  used(node, "host");
  if (writes && node->op && !node->has_value)
    throw ArgumentError("mutable_host: only a leaf or an evaluated array can be written, this is the result of " +
                        std::string(node->op->name()));
  if (!node->is_dense())
    throw ArgumentError("host: the view " + describe(array) + " is not contiguous; use contiguous() first");
  evaluate(std::span<const NodePtr>(&node, 1), "host");
  if (node->shape.size() == 0) return;
  const Node& base = node->base();
  if (writes && base.is_read_only)
    throw ArgumentError(
        "mutable_host: " + describe(array) +
        " shows rows of a data set, which others read; write to a copy: array(a.to_vector<T>(), a.shape())");
  if (writes) {
    const std::lock_guard lock(node->context->mutex);
    before_foreign_write(base_of(node), file, line);
  }
  state_ = std::make_unique<State>();
  state_->storage = base.storage;
  state_->context = node->context;
  const std::size_t width = bytes_of(node->dtype);
  const std::size_t offset = static_cast<std::size_t>(base.offset + (node->is_view ? node->offset : 0)) * width;
  void* bytes = base.storage->acquire_host(writes, offset, static_cast<std::size_t>(node->shape.size()) * width, file,
                                           line, &state_->id);
  data_ = static_cast<char*>(bytes) + offset;
}

Borrow::Borrow(Borrow&&) noexcept = default;
Borrow& Borrow::operator=(Borrow&& other) noexcept {
  Borrow taken(std::move(other));
  std::swap(state_, taken.state_);
  std::swap(data_, taken.data_);
  return *this;
}
Borrow::~Borrow() {
  if (state_) state_->storage->release_host(state_->id);
}

}  // namespace detail

// ---- leaves

namespace {

template <class T>
Array leaf_of(std::span<const T> values, const Shape& shape) {
  if (static_cast<std::int64_t>(values.size()) != shape.size())
    throw ArgumentError("array: shape " + shape.to_string() + " has " + std::to_string(shape.size()) +
                        " elements, got " + std::to_string(values.size()));
  Array result = empty(shape, dtype_of<T>);
  if (!values.empty()) {
    const HostView<T> view = result.mutable_host<T>();
    std::memcpy(view.data(), values.data(), values.size_bytes());
  }
  return result;
}

}  // namespace

Array array(std::span<const float> values, const Shape& shape) { return leaf_of(values, shape); }
Array array(std::span<const double> values, const Shape& shape) { return leaf_of(values, shape); }
Array array(std::span<const std::int32_t> values, const Shape& shape) { return leaf_of(values, shape); }
Array array(std::span<const std::int64_t> values, const Shape& shape) { return leaf_of(values, shape); }
Array array(std::span<const std::uint8_t> values, const Shape& shape) { return leaf_of(values, shape); }
Array array(std::span<const bool> values, const Shape& shape) { return leaf_of(values, shape); }
Array array(const std::vector<bool>& values, const Shape& shape) {
  return astype(array(std::vector<std::uint8_t>(values.begin(), values.end()), shape), bool_);
}
Array array(std::span<const half_bits> values, const Shape& shape) { return leaf_of(values, shape); }
Array array(std::span<const bfloat16_bits> values, const Shape& shape) { return leaf_of(values, shape); }
Array array(std::initializer_list<float> values) { return array(values, {static_cast<std::int64_t>(values.size())}); }
Array array(std::initializer_list<float> values, const Shape& shape) {
  return leaf_of(std::span<const float>(values.begin(), values.size()), shape);
}
Array empty(const Shape& shape, Dtype dtype) {
  return detail::make_leaf(detail::current_context(), shape, dtype, detail::Category::value);
}

Array adopt(void* pointer, const Shape& shape, Dtype dtype, std::function<void()> deleter, Adoption* verdict) {
  const detail::ContextPtr context = detail::current_context();
  Adoption ignored;
  detail::StoragePtr storage =
      context->runtime->adopt(pointer, static_cast<std::size_t>(shape.size()) * bytes_of(dtype), std::move(deleter),
                              verdict ? verdict : &ignored);
  return detail::make_leaf_on(context, shape, dtype, detail::Category::adopted, std::move(storage));
}

}  // namespace samebytes
