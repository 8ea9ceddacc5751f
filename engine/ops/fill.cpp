// Arrays made only from scalars: full and arange. The scalars are passed by value, so other values reuse the plan.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "graph/launch.h"
#include "ops/host.h"
#include "ops/pointwise.h"
#include "ops/sizes.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

// Fills in parts; `value` makes a T of the scalar.
template <class T, class Value>
void add_host_fill_of(KernelCall& call, std::int64_t n, Value value) {
  constexpr std::int64_t part = 8192;
  call.on_host({.values = static_cast<double>(n)}, ceil_div(n, part),
               [=](void* const* arrays, const double* scalars, std::int64_t begin, std::int64_t end) {
                 T* const dst = static_cast<T*>(arrays[0]);
                 std::fill(dst + begin * part, dst + std::min(n, end * part), value(scalars[0]));
               });
}
template <class T>
void add_host_fill(KernelCall& call, std::int64_t n) {
  add_host_fill_of<T>(call, n, [](double scalar) { return static_cast<T>(scalar); });
}
// Integers are passed as bits.
template <class T>
void add_host_whole_fill(KernelCall& call, std::int64_t n) {
  add_host_fill_of<T>(call, n, [](double scalar) { return static_cast<T>(std::bit_cast<std::uint64_t>(scalar)); });
}

template <class T>
void add_host_whole_arange(KernelCall& call, std::int64_t n) {
  call.on_host({.values = static_cast<double>(n)}, [n](void* const* arrays, const double* scalars) {
    auto* const dst = static_cast<T*>(arrays[0]);
    const std::uint64_t start = std::bit_cast<std::uint64_t>(scalars[0]),
                        step = std::bit_cast<std::uint64_t>(scalars[1]);
    for (std::int64_t i = 0; i < n; ++i) dst[i] = static_cast<T>(start + static_cast<std::uint64_t>(i) * step);
  });
}

template <class T>
void add_host_arange(KernelCall& call, std::int64_t n, bool is_fused) {
  call.on_host({.values = static_cast<double>(n)}, [=](void* const* arrays, const double* scalars) {
    host_arange(n, static_cast<T>(scalars[0]), static_cast<T>(scalars[1]), is_fused, static_cast<T*>(arrays[0]));
  });
}

class Full final : public Op {
 public:
  std::string_view name() const override { return "full"; }
  void launch(Launch& run) const override {
    const Dtype dtype = run.dst_dtype();
    const std::int64_t n = run.dst_shape().size();
    if (is_floating(dtype)) {
      KernelCall call = run.kernel("fill_real", dtype);
      call.args(run.dst(), n, DynamicReal{0}).over_elements(n);
      if (n <= kMostHostValues && dtype == f32) add_host_fill<float>(call, n);
      if (n <= kMostHostValues && dtype == f64) add_host_fill<double>(call, n);
    } else {
      KernelCall call = run.kernel(dtype == i32 ? "fill_i32" : dtype == i64 ? "fill_i64" : "fill_u8");
      call.args(run.dst(), n, DynamicBits{0}).over_elements(n);
      if (n <= kMostHostValues && dtype == i32) add_host_whole_fill<std::uint32_t>(call, n);
      if (n <= kMostHostValues && dtype == i64) add_host_whole_fill<std::uint64_t>(call, n);
      if (n <= kMostHostValues && bytes_of(dtype) == 1) add_host_whole_fill<std::uint8_t>(call, n);
    }
  }
};

class Arange final : public Op {
 public:
  std::string_view name() const override { return "arange"; }
  void launch(Launch& run) const override {
    const Dtype dtype = run.dst_dtype();
    const std::int64_t n = run.dst_shape().size();
    if (is_floating(dtype)) {
      KernelCall call = run.kernel("fill_arange", dtype);
      call.args(run.dst(), n, DynamicReal{0}, DynamicReal{1}).over_elements(n);
      const bool is_fused = run.device().info().has_fma;
      if (n <= kMostHostValues && dtype == f32) add_host_arange<float>(call, n, is_fused);
      if (n <= kMostHostValues && dtype == f64) add_host_arange<double>(call, n, is_fused);
    } else {
      KernelCall call = run.kernel(dtype == i64 ? "fill_arange_i64" : "fill_arange_i32");
      call.args(run.dst(), n, DynamicBits{0}, DynamicBits{1}).over_elements(n);
      if (n <= kMostHostValues && dtype == i64) add_host_whole_arange<std::uint64_t>(call, n);
      if (n <= kMostHostValues && dtype == i32) add_host_whole_arange<std::uint32_t>(call, n);
    }
  }
};

Scalar scalar_of(const Number& number, Dtype dtype) {
  if (is_floating(dtype)) return Scalar(number.value());
  return Scalar(static_cast<std::uint64_t>(number.whole()));
}

}  // namespace

std::string text_of(double value) {
  std::string text = std::to_string(value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string text_of(const Number& number) {
  return number.is_whole() ? std::to_string(number.whole()) : text_of(number.value());
}

bool is_representable(const Number& number, Dtype dtype) {
  if (is_floating(dtype)) return true;
  const std::int64_t whole = number.whole();
  if (!number.is_whole()) return false;
  if (dtype == i32) return whole == static_cast<std::int32_t>(whole);
  return dtype == i64 || (whole >= 0 && whole <= (dtype == u8 ? 255 : 1));
}

}  // namespace detail

Array full(const Shape& shape, const Number& value, Dtype dtype, const detail::Here&) {
  if (!detail::is_representable(value, dtype))
    throw ArgumentError("full: the value must fit " + std::string(name_of(dtype)) + ", got " + detail::text_of(value));
  static const auto op = detail::make_op<detail::Full>();
  return detail::make_array(op, shape, dtype, {}, {detail::scalar_of(value, dtype)});
}

Array arange(double start, double stop, double step, Dtype dtype, const detail::Here&) {
  if (!(std::isfinite(start) && std::isfinite(stop) && std::isfinite(step) && step != 0.0))
    throw ArgumentError("arange: start, stop and step must be finite and step not 0, got " + detail::text_of(start) +
                        ", " + detail::text_of(stop) + ", " + detail::text_of(step));
  const double count = std::max(0.0, std::ceil((stop - start) / step));
  if (!(count <= static_cast<double>(Shape::kMostElements)))
    throw ArgumentError("arange: expected at most 2^56 elements, got " + detail::text_of(start) + ", " +
                        detail::text_of(stop) + ", " + detail::text_of(step));
  const auto n = static_cast<std::int64_t>(count);
  if (dtype == u8 || dtype == bool_) return astype(arange(start, stop, step, i32), dtype);
  if (!detail::is_representable(start, dtype) || !detail::is_representable(step, dtype))
    throw ArgumentError("arange: start and step must be whole numbers for " + std::string(name_of(dtype)) + ", got " +
                        detail::text_of(start) + " and " + detail::text_of(step));
  static const auto op = detail::make_op<detail::Arange>();
  return detail::make_array(op, Shape{n}, dtype, {}, {detail::scalar_of(start, dtype), detail::scalar_of(step, dtype)});
}

}  // namespace samebytes
