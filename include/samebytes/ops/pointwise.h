// Pointwise ops: one row each of the table in engine/ops/pointwise.cpp; the planner fuses them. Binary ops broadcast as
// NumPy does; mixed floating types give the wider one.
// All throw ArgumentError: op, need, what came.
#pragma once

#include <cstdint>

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
Array log(const Array& a);
Array sqrt(const Array& a);
Array rsqrt(const Array& a);
Array square(const Array& a);
Array abs(const Array& a);
Array sin(const Array& a);
Array cos(const Array& a);
Array sign(const Array& a);
Array floor(const Array& a);
Array tanh(const Array& a);
Array sigmoid(const Array& a);
Array relu(const Array& a);
Array silu(const Array& a);                          // x * sigmoid(x)
enum class GeluForm : std::uint8_t { exact, tanh };  // erf, or the tanh approximation (Hendrycks and Gimpel 2016)
Array gelu(const Array& a, GeluForm form = GeluForm::exact);
Array clip(const Array& a, double low, double high);
// Comparisons give bool arrays.
Array equal(const Array& a, const Array& b);
Array not_equal(const Array& a, const Array& b);
Array less(const Array& a, const Array& b);
Array less_equal(const Array& a, const Array& b);
Array greater(const Array& a, const Array& b);
Array greater_equal(const Array& a, const Array& b);
Array where(const Array& condition, const Array& a, const Array& b);  // condition ? a : b
Array astype(const Array& a, Dtype dtype);

}  // namespace samebytes
