// Quantisation: exact integers on the host, as the file's types have them.
#include <algorithm>
#include <cmath>

#include "onnx/registry.h"
#include "onnx/windows.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

using Int = std::int64_t;

constexpr std::size_t kFactor = 2, kTerm = 4;  // bytes of what is multiplied and of what is added, at most

// The integers of an input, so narrow that no sum of them or of their products overflows.
std::vector<Int> narrow_ints(const Call& call, std::size_t i, std::size_t bytes) {
  if (bytes_of(call.type(i)) > bytes)
    call.refuse("input " + std::to_string(i) + " is " + name_of(call.type(i)) + ", expected integers of at most " +
                std::to_string(8 * bytes) + " bits");
  return ints_of(call.at(i));
}

struct Range {
  double low, high;
};
Range range_of(const Call& call, Type type) {
  switch (type) {
    case Type::u8: return {0, 255};
    case Type::i8: return {-128, 127};
    case Type::u16: return {0, 65535};
    case Type::i16: return {-32768, 32767};
    case Type::i32: return {-2147483648.0, 2147483647.0};
    default: call.refuse("quantised numbers are 8 or 16 bits, got " + name_of(type));
  }
}

// Which scale belongs to each element: one for all, one along an axis, or one for each block of an axis.
std::vector<std::size_t> scales_of(const Call& call, const Sizes& sizes, const Sizes& scale, Int axis_asked) {
  std::vector<std::size_t> at(static_cast<std::size_t>(list_count(sizes)), 0);
  if (count(scale) == 1) return at;
  const int axis = call.axis(axis_asked, static_cast<int>(sizes.size()));
  const auto strides = strides_of(sizes), own = strides_of(scale);
  const auto k = static_cast<std::size_t>(axis);
  if (scale.size() == 1) {
    if (scale[0] != sizes[k]) call.refuse("one scale for each place of the axis was expected");
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::size_t>(Int(i) / strides[k] % sizes[k]);
    return at;
  }
  const Int block = call.integer("block_size", 0);
  if (block < 1 || scale.size() != sizes.size()) call.refuse("the scale has another rank");
  const Int blocks = sizes[k] == 0 ? 0 : (sizes[k] - 1) / block + 1;
  for (std::size_t axis_of = 0; axis_of < sizes.size(); ++axis_of)
    if ((axis_of == k ? blocks : sizes[axis_of]) != scale[axis_of]) call.refuse("the scale has another shape");
  for (std::size_t i = 0; i < at.size(); ++i) {
    Int place = 0;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      const Int along = Int(i) / strides[d] % sizes[d];
      place += (d == k ? along / block : along) * own[d];
    }
    at[i] = static_cast<std::size_t>(place);
  }
  return at;
}

// NaN, of 0 / 0 or an infinite scale, becomes 0.
Int saturated(double value, const Range& range) {
  if (std::isnan(value)) return 0;
  return static_cast<Int>(std::clamp(std::nearbyint(value), range.low, range.high));
}

Outputs quantised(const Call& call) {
  Type to = call.has(2) ? call.type(2) : call.element_type("output_dtype", Type::none);
  if (to == Type::none) to = Type::u8;
  const Range range = range_of(call, to);
  const Sizes sizes = call.sizes();
  const auto which = scales_of(call, sizes, call.sizes(1), call.integer("axis", 1));
  const auto x = reals_of(call.at(0)), scale = reals_of(call.at(1));
  const auto zero = call.has(2) ? ints_of(call.at(2)) : std::vector<Int>(scale.size(), 0);
  std::vector<Int> result(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double q = static_cast<float>(x[i]) / static_cast<float>(scale[which[i]]);
    result[i] = saturated(std::nearbyint(q) + static_cast<double>(zero.at(which[i])), range);
  }
  return {ints_item(result, sizes, to)};
}

Outputs dequantised(const Call& call) {
  const Sizes sizes = call.sizes();
  const auto x = narrow_ints(call, 0, kTerm);
  const auto scale = reals_of(call.at(1));
  const auto zero = call.has(2) ? narrow_ints(call, 2, kTerm) : std::vector<Int>(scale.size(), 0);
  const auto which = scales_of(call, sizes, call.sizes(1), call.integer("axis", 1));
  std::vector<float> result(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    result[i] = static_cast<float>(static_cast<double>(x[i] - zero.at(which[i])) * scale[which[i]]);
  const Array values = samebytes::array(std::span<const float>(result), shape_of(sizes));
  return {item_of(astype(values, dtype_of(call.type(1))))};
}

Outputs dynamically_quantised(const Call& call) {
  const auto x = reals_of(call.at(0));
  double low = 0, high = 0;
  for (const double value : x) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const float scale = static_cast<float>(high - low) / 255.0F;
  const Range range{0, 255};
  const Int zero = scale > 0 ? saturated(-static_cast<float>(low) / scale, range) : 0;
  std::vector<Int> result(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    result[i] = scale > 0
                    ? saturated(std::nearbyint(static_cast<float>(x[i]) / scale) + static_cast<double>(zero), range)
                    : zero;
  return {ints_item(result, call.sizes(), Type::u8), item_of(full(Shape{}, double{scale})),
          ints_item({zero}, {}, Type::u8)};
}

// Matrices of integers: a [..., M, K] less its zeros, b [..., K, N] less its own.
struct Product {
  std::vector<Int> values;
  Sizes sizes;
};
std::vector<Int> without_zero(const Call& call, std::size_t i, std::size_t at, bool is_left) {
  auto values = narrow_ints(call, i, kFactor);
  const Sizes sizes = call.sizes(i);
  if (sizes.empty()) call.refuse("expected matrices, got a scalar");
  if (!call.has(at)) return values;
  const auto zero = narrow_ints(call, at, kFactor);
  if (zero.empty()) call.refuse("a zero point has no value");
  const auto columns = static_cast<std::size_t>(sizes.back());
  for (std::size_t k = 0; k < values.size(); ++k) {
    const std::size_t which = zero.size() == 1 ? 0 : is_left ? k / columns % zero.size() : k % columns % zero.size();
    values[k] -= zero[which];
  }
  return values;
}
Product product(const Call& call, const std::vector<Int>& a, Sizes of_a, const std::vector<Int>& b, Sizes of_b) {
  const bool is_row = of_a.size() == 1, is_column = of_b.size() == 1;
  if (is_row) of_a.insert(of_a.begin(), 1);
  if (is_column) of_b.push_back(1);
  if (of_a.size() < 2 || of_b.size() < 2 || of_a.back() != of_b[of_b.size() - 2])
    call.refuse("the inner sizes of the product differ");
  const Int m = of_a[of_a.size() - 2], k = of_a.back(), n = of_b.back();
  const Sizes batch_a(of_a.begin(), of_a.end() - 2), batch_b(of_b.begin(), of_b.end() - 2);
  const Sizes batch = broadcast(batch_a, batch_b);
  Product result{{}, batch};
  if (!is_row) result.sizes.push_back(m);
  if (!is_column) result.sizes.push_back(n);
  if (list_count(result.sizes) == 0) return result;
  const auto from_a = positions(batch_a, batch), from_b = positions(batch_b, batch);
  for (std::size_t one = 0; one < from_a.size(); ++one)
    for (Int row = 0; row < m; ++row)
      for (Int column = 0; column < n; ++column) {
        Int sum = 0;
        for (Int i = 0; i < k; ++i)
          sum += a.at(static_cast<std::size_t>((from_a[one] * m + row) * k + i)) *
                 b.at(static_cast<std::size_t>((from_b[one] * k + i) * n + column));
        result.values.push_back(sum);
      }
  return result;
}

Outputs integer_product(const Call& call) {
  const Product made =
      product(call, without_zero(call, 0, 2, true), call.sizes(0), without_zero(call, 1, 3, false), call.sizes(1));
  return {ints_item(made.values, made.sizes, Type::i32)};
}

// a, its scale and zero, b, its scale and zero, then those of the result.
Outputs quantised_product(const Call& call) {
  const Product made =
      product(call, without_zero(call, 0, 2, true), call.sizes(0), without_zero(call, 3, 5, false), call.sizes(3));
  const auto scale_a = reals_of(call.at(1)), scale_b = reals_of(call.at(4)), scale = reals_of(call.at(6));
  if (scale_a.size() != 1 || scale_b.size() != 1 || scale.size() != 1) call.refuse("one scale for each was expected");
  const double zero = static_cast<double>(ints_of(call.at(7)).at(0));
  const Range range = range_of(call, call.type(7));
  std::vector<Int> result;
  for (const Int value : made.values) {
    const double exact = std::nearbyint(static_cast<double>(value) * scale_a[0] * scale_b[0] / scale[0]) + zero;
    if (call.type(7) == Type::i8 && (exact < range.low || exact > range.high))
      call.refuse("a value is outside of int8, where ONNX does not say what becomes of it");
    result.push_back(saturated(exact, range));
  }
  return {ints_item(result, made.sizes, call.type(7))};
}

// Convolution of integers less their zeros: x [N, C, axes...], w [K, C / group, taps...].
struct Convolved {
  std::vector<Int> values;
  Sizes sizes;
};
Convolved convolved(const Call& call, const std::vector<Int>& x, const Sizes& in, const std::vector<Int>& w,
                    const Sizes& taps) {
  if (in.size() < 3 || taps.size() != in.size()) call.refuse("expected images");
  if (call.text("auto_pad", "NOTSET") != "NOTSET") call.refuse("auto_pad is not supported");
  const std::size_t axes = in.size() - 2;
  const Sizes kernel(taps.begin() + 2, taps.end());
  const Windows by = windows(call, kernel);
  const Int groups = call.integer("group", 1);
  if (by.kernel != kernel || groups < 1 || in[1] % groups != 0 || taps[1] != in[1] / groups || taps[0] % groups != 0)
    call.refuse("its attributes do not fit the sizes");
  Convolved result{{}, {in[0], taps[0]}};
  for (std::size_t k = 0; k < axes; ++k) {
    const Int room = in[k + 2] + by.before[k] + by.after[k] - by.dilation[k] * (kernel[k] - 1) - 1;
    if (room < 0) call.refuse("the windows do not fit");
    result.sizes.push_back(room / by.stride[k] + 1);
  }
  const Int total = list_count(result.sizes);
  if (total == 0) return result;
  const auto in_strides = strides_of(in), tap_strides = strides_of(taps), strides_out = strides_of(result.sizes);
  const Int window = count(Sizes(taps.begin() + 1, taps.end()));
  for (Int i = 0; i < total; ++i) {
    const Int image = i / strides_out[0], channel = i / strides_out[1] % taps[0],
              first = channel / (taps[0] / groups) * taps[1];
    Int sum = 0;
    for (Int t = 0; t < window; ++t) {
      Int at = image * in_strides[0] + (first + t / tap_strides[1]) * in_strides[1];
      bool is_inside = true;
      for (std::size_t k = 0; k < axes && is_inside; ++k) {
        const Int out = i / strides_out[k + 2] % result.sizes[k + 2], tap = t / tap_strides[k + 2] % taps[k + 2];
        const Int place = out * by.stride[k] - by.before[k] + tap * by.dilation[k];
        is_inside = place >= 0 && place < in[k + 2];
        if (is_inside) at += place * in_strides[k + 2];
      }
      if (is_inside) sum += x.at(std::size_t(at)) * w.at(static_cast<std::size_t>(channel * window + t));
    }
    result.values.push_back(sum);
  }
  return result;
}
std::vector<Int> weights_without_zero(const Call& call, std::size_t i, std::size_t at) {
  auto values = narrow_ints(call, i, kFactor);
  if (!call.has(at)) return values;
  const auto zero = narrow_ints(call, at, kFactor);
  const Sizes sizes = call.sizes(i);
  if (zero.size() != 1 && (zero.empty() || sizes.empty() || std::ssize(zero) != sizes[0]))
    call.refuse("expected one zero point, or one for each filter, got " + std::to_string(zero.size()));
  const std::size_t each = values.size() / zero.size();
  for (std::size_t k = 0; k < values.size(); ++k) values[k] -= zero[k / each];
  return values;
}

Outputs integer_convolution(const Call& call) {
  const Convolved made =
      convolved(call, weights_without_zero(call, 0, 2), call.sizes(0), weights_without_zero(call, 1, 3), call.sizes(1));
  return {ints_item(made.values, made.sizes, Type::i32)};
}

Outputs quantised_convolution(const Call& call) {
  const Convolved made =
      convolved(call, weights_without_zero(call, 0, 2), call.sizes(0), weights_without_zero(call, 3, 5), call.sizes(3));
  const auto scale_x = reals_of(call.at(1)), scale_w = reals_of(call.at(4)), scale = reals_of(call.at(6));
  const auto bias = call.has(8) ? narrow_ints(call, 8, kTerm) : std::vector<Int>();
  const double zero = static_cast<double>(ints_of(call.at(7)).at(0));
  const Range range = range_of(call, call.type(7));
  const Int channels = made.sizes[1], each = strides_of(made.sizes)[1];
  std::vector<Int> result;
  for (std::size_t i = 0; i < made.values.size(); ++i) {
    const auto channel = static_cast<std::size_t>(Int(i) / each % channels);
    const double sum = static_cast<double>(made.values[i] + (bias.empty() ? 0 : bias.at(channel)));
    const double factor = scale_x.at(0) * scale_w.at(scale_w.size() == 1 ? 0 : channel) / scale.at(0);
    result.push_back(saturated(std::nearbyint(sum * factor) + zero, range));
  }
  return {ints_item(result, made.sizes, call.type(7))};
}

}  // namespace

void add_quantised(Registry& registry) {
  registry.insert({{"QuantizeLinear", quantised}, {"DequantizeLinear", dequantised}});
  registry.insert({{"DynamicQuantizeLinear", dynamically_quantised}, {"MatMulInteger", integer_product}});
  registry.insert({{"QLinearMatMul", quantised_product}, {"ConvInteger", integer_convolution}});
  registry.insert({{"QLinearConv", quantised_convolution}});
}

}  // namespace samebytes::onnx
