// Pointwise ops: one row each of the table in engine/ops/pointwise.cpp; the planner fuses them. Binary ops broadcast as
// NumPy does; docs/types.md has the types of the results.
// All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include <cstdint>
#include <optional>

#include "samebytes/array.h"

namespace samebytes {

Array operator+(const Input& a, const Input& b);
Array operator-(const Input& a, const Input& b);
Array operator*(const Input& a, const Input& b);
Array operator/(const Input& a, const Input& b);
Array operator-(const Input& a);
Array operator+(const Input& a, const Number& b);
Array operator-(const Input& a, const Number& b);
Array operator*(const Input& a, const Number& b);
Array operator/(const Input& a, const Number& b);
Array operator+(const Number& a, const Input& b);
Array operator-(const Number& a, const Input& b);
Array operator*(const Number& a, const Input& b);
Array operator/(const Number& a, const Input& b);
// a = a + b and so on: the handle stands for the new value from now on, and what was written with the old one keeps it.
// So a handle on a cell is a handle on the sum after it, and the cell has the value it had: update() and assign()
// change cells.
inline Array& operator+=(Array& a, const Input& b) { return a = a + b; }
inline Array& operator-=(Array& a, const Input& b) { return a = a - b; }
inline Array& operator*=(Array& a, const Input& b) { return a = a * b; }
inline Array& operator/=(Array& a, const Input& b) { return a = a / b; }
inline Array& operator+=(Array& a, const Number& b) { return a = a + b; }
inline Array& operator-=(Array& a, const Number& b) { return a = a - b; }
inline Array& operator*=(Array& a, const Number& b) { return a = a * b; }
inline Array& operator/=(Array& a, const Number& b) { return a = a / b; }
// Where both are equal, each gets half of the gradient, as in PyTorch.
Array maximum(const Input& a, const Input& b);
Array maximum(const Input& a, const Number& b);
Array maximum(const Number& a, const Input& b);
Array minimum(const Input& a, const Input& b);
Array minimum(const Input& a, const Number& b);
Array minimum(const Number& a, const Input& b);
// a - b * floor(a / b), with the sign of b, as in Python; fmod has the sign of a. Whole numbers by 0 give 0.
Array remainder(const Input& a, const Input& b);
Array remainder(const Input& a, const Number& b);
Array fmod(const Input& a, const Input& b);
Array fmod(const Input& a, const Number& b);
Array atan2(const Input& a, const Input& b);  // the angle of the point (b, a)
Array pow(const Input& a, double exponent);
Array pow(const Input& base, const Input& exponent);
Array pow(const Number& base, const Input& exponent);
Array exp(const Input& a);
Array expm1(const Input& a);  // exp(a) - 1, accurate for small a
Array exp2(const Input& a);
Array log(const Input& a);
Array log1p(const Input& a);  // log(1 + a), accurate for small a
Array log2(const Input& a);
Array log10(const Input& a);
Array sqrt(const Input& a);
Array rsqrt(const Input& a);
Array square(const Input& a);
Array reciprocal(const Input& a);
Array abs(const Input& a);
Array sin(const Input& a);
Array cos(const Input& a);
Array tan(const Input& a);
Array asin(const Input& a);
Array acos(const Input& a);
Array atan(const Input& a);
Array sinh(const Input& a);
Array cosh(const Input& a);
Array asinh(const Input& a);
Array acosh(const Input& a);
Array atanh(const Input& a);
Array sign(const Input& a);
Array floor(const Input& a);  // floor, ceil, trunc and round leave whole numbers as they are
Array ceil(const Input& a);
Array trunc(const Input& a);
Array round(const Input& a);  // halves to even, as in NumPy
Array erf(const Input& a);
Array tanh(const Input& a);
Array sigmoid(const Input& a);
Array relu(const Input& a);
Array silu(const Input& a);                          // x * sigmoid(x)
enum class GeluForm : std::uint8_t { exact, tanh };  // erf, or the tanh approximation (Hendrycks and Gimpel 2016)
Array gelu(const Input& a, GeluForm form = GeluForm::exact);
// Activations (engine/ops/activations.cpp). Values and gradients are PyTorch's, also at kinks; integers become f32.
Array leaky_relu(const Input& a, double slope = 0.01);  // a > 0 ? a : slope * a
// a > 0 ? a : slope * a with a learned slope (He et al. 2015): one value, or one per channel [C] for a [..., C].
Array prelu(const Input& a, const Input& slope);
Array elu(const Input& a, double alpha = 1.0);  // a > 0 ? a : alpha * (exp(a) - 1) (Clevert et al. 2016)
Array selu(const Input& a);                     // scaled elu (Klambauer et al. 2017)
// log(1 + exp(beta * a)) / beta, or a itself if beta * a is above the threshold. beta must not be 0.
Array softplus(const Input& a, double beta = 1.0, double threshold = 20.0);
Array mish(const Input& a);          // a * tanh(softplus(a)) (Misra 2019)
Array relu6(const Input& a);         // a clipped to [0, 6]
Array hard_sigmoid(const Input& a);  // relu6(a + 3) / 6 (Howard et al. 2019)
Array hard_swish(const Input& a);    // a * relu6(a + 3) / 6
Array log_sigmoid(const Input& a);   // log(sigmoid(a))
// first * sigmoid(second) for the two halves along the axis, whose size must be even (Dauphin et al. 2017).
Array glu(const Input& a, int axis = -1);
Array clip(const Input& a, const Number& low, const Number& high);  // high where low is above it
// Bounds of a one-sided clip; set at least one.
struct ClipBounds {
  std::optional<double> low{}, high{};
};
Array clip(const Input& a, const ClipBounds& bounds);
// Comparisons give bool arrays, one value per element: if (all(a == b).value()).
Array equal(const Input& a, const Input& b);
Array equal(const Input& a, const Number& b);
Array not_equal(const Input& a, const Input& b);
Array not_equal(const Input& a, const Number& b);
Array less(const Input& a, const Input& b);
Array less(const Input& a, const Number& b);
Array less_equal(const Input& a, const Input& b);
Array less_equal(const Input& a, const Number& b);
Array greater(const Input& a, const Input& b);
Array greater(const Input& a, const Number& b);
Array greater_equal(const Input& a, const Input& b);
Array greater_equal(const Input& a, const Number& b);
inline Array operator==(const Input& a, const Input& b) { return equal(a, b); }
inline Array operator==(const Input& a, const Number& b) { return equal(a, b); }
inline Array operator==(const Number& a, const Input& b) { return equal(b, a); }
inline Array operator!=(const Input& a, const Input& b) { return not_equal(a, b); }
inline Array operator!=(const Input& a, const Number& b) { return not_equal(a, b); }
inline Array operator!=(const Number& a, const Input& b) { return not_equal(b, a); }
inline Array operator<(const Input& a, const Input& b) { return less(a, b); }
inline Array operator<(const Input& a, const Number& b) { return less(a, b); }
inline Array operator<(const Number& a, const Input& b) { return greater(b, a); }
inline Array operator<=(const Input& a, const Input& b) { return less_equal(a, b); }
inline Array operator<=(const Input& a, const Number& b) { return less_equal(a, b); }
inline Array operator<=(const Number& a, const Input& b) { return greater_equal(b, a); }
inline Array operator>(const Input& a, const Input& b) { return greater(a, b); }
inline Array operator>(const Input& a, const Number& b) { return greater(a, b); }
inline Array operator>(const Number& a, const Input& b) { return less(b, a); }
inline Array operator>=(const Input& a, const Input& b) { return greater_equal(a, b); }
inline Array operator>=(const Input& a, const Number& b) { return greater_equal(a, b); }
inline Array operator>=(const Number& a, const Input& b) { return less_equal(b, a); }
// Of truths, bool; other types count as true where they are not 0, NaN too. The operators are for bool arrays alone.
Array logical_and(const Input& a, const Input& b);
Array logical_or(const Input& a, const Input& b);
Array logical_xor(const Input& a, const Input& b);
Array logical_not(const Input& a);
Array operator&(const Input& a, const Input& b);
Array operator|(const Input& a, const Input& b);
Array operator^(const Input& a, const Input& b);
Array operator!(const Input& a);
// bool; whole numbers are finite.
Array isnan(const Input& a);
Array isinf(const Input& a);
Array isfinite(const Input& a);
Array where(const Input& condition, const Input& a, const Input& b);  // condition ? a : b
Array where(const Input& condition, const Input& a, const Number& b);
Array where(const Input& condition, const Number& a, const Input& b);
// mask ? value : a; mask is bool and broadcasts. The gradient is zero where the mask is set.
Array masked_fill(const Input& a, const Input& mask, const Number& value);
Array astype(const Input& a, Dtype dtype);

}  // namespace samebytes
