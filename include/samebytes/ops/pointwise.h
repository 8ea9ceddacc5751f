// Pointwise ops: one row each of the table in engine/ops/pointwise.cpp; the planner fuses them. Binary ops broadcast as
// NumPy does; mixed floating types give the wider one.
// All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include <cstdint>
#include <optional>

#include "samebytes/array.h"

namespace samebytes {

Array operator+(const Array& a, const Array& b);
Array operator-(const Array& a, const Array& b);
Array operator*(const Array& a, const Array& b);
Array operator/(const Array& a, const Array& b);
Array operator-(const Array& a);
Array operator+(const Array& a, double b);
Array operator-(const Array& a, double b);
Array operator*(const Array& a, double b);
Array operator/(const Array& a, double b);
Array operator+(double a, const Array& b);
Array operator-(double a, const Array& b);
Array operator*(double a, const Array& b);
Array operator/(double a, const Array& b);
Array maximum(const Array& a, const Array& b);
Array minimum(const Array& a, const Array& b);
Array pow(const Array& a, double exponent);
Array exp(const Array& a);
Array expm1(const Array& a);  // exp(a) - 1, accurate for small a
Array log(const Array& a);
Array sqrt(const Array& a);
Array rsqrt(const Array& a);
Array square(const Array& a);
Array abs(const Array& a);
Array sin(const Array& a);
Array cos(const Array& a);
Array sign(const Array& a);
Array floor(const Array& a);
Array round(const Array& a);  // halves to even, as in NumPy
Array erf(const Array& a);
Array tanh(const Array& a);
Array sigmoid(const Array& a);
Array relu(const Array& a);
Array silu(const Array& a);                          // x * sigmoid(x)
enum class GeluForm : std::uint8_t { exact, tanh };  // erf, or the tanh approximation (Hendrycks and Gimpel 2016)
Array gelu(const Array& a, GeluForm form = GeluForm::exact);
// Activations (engine/ops/activations.cpp). Values and gradients are PyTorch's, also at kinks; integers become f32.
Array leaky_relu(const Array& a, double slope = 0.01);  // a > 0 ? a : slope * a
// a > 0 ? a : slope * a with a learned slope (He et al. 2015): one value, or one per channel [C] for a [..., C].
Array prelu(const Array& a, const Array& slope);
Array elu(const Array& a, double alpha = 1.0);  // a > 0 ? a : alpha * (exp(a) - 1) (Clevert et al. 2016)
Array selu(const Array& a);                     // scaled elu (Klambauer et al. 2017)
// log(1 + exp(beta * a)) / beta, or a itself if beta * a is above the threshold. beta must not be 0.
Array softplus(const Array& a, double beta = 1.0, double threshold = 20.0);
Array mish(const Array& a);          // a * tanh(softplus(a)) (Misra 2019)
Array relu6(const Array& a);         // a clipped to [0, 6]
Array hard_sigmoid(const Array& a);  // relu6(a + 3) / 6 (Howard et al. 2019)
Array hard_swish(const Array& a);    // a * relu6(a + 3) / 6
Array log_sigmoid(const Array& a);   // log(sigmoid(a))
// first * sigmoid(second) for the two halves along the axis, whose size must be even (Dauphin et al. 2017).
Array glu(const Array& a, int axis = -1);
Array clip(const Array& a, double low, double high);
// Bounds of a one-sided clip; set at least one.
struct ClipBounds {
  std::optional<double> low{}, high{};
};
Array clip(const Array& a, const ClipBounds& bounds);
// Comparisons give bool arrays.
Array equal(const Array& a, const Array& b);
Array not_equal(const Array& a, const Array& b);
Array less(const Array& a, const Array& b);
Array less_equal(const Array& a, const Array& b);
Array greater(const Array& a, const Array& b);
Array greater_equal(const Array& a, const Array& b);
Array where(const Array& condition, const Array& a, const Array& b);  // condition ? a : b
// mask ? value : a; mask is bool and broadcasts. The gradient is zero where the mask is set.
Array masked_fill(const Array& a, const Array& mask, double value);
Array astype(const Array& a, Dtype dtype);

}  // namespace samebytes
