// Inverse and hyperbolic functions, made of the library's, and powers with an exponent for each element.
#include <limits>
#include <numbers>

#include "onnx/registry.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

Array like(const Array& a, double value) { return full(Shape{}, value, a.dtype()); }

template <auto op>
Outputs of_one(const Call& call) {
  if (!call.is_floating()) call.refuse("integers are not supported");
  const Array& a = call.at(0).array;
  const Array wide = a.dtype() == f64 ? a : astype(a, f32);
  return {ordered(astype(op(wide), a.dtype()), call.at(0).order)};
}

Array hyperbolic_sine(const Array& a) { return (expm1(a) - expm1(-a)) * 0.5; }
Array hyperbolic_cosine(const Array& a) { return (exp(a) + exp(-a)) * 0.5; }
Array area_sine(const Array& a) {
  const Array x = abs(a);
  return sign(a) * log(x + sqrt(square(x) + 1.0));
}
Array area_cosine(const Array& a) { return log(a + sqrt((a - 1.0) * (a + 1.0))); }
Array area_tangent(const Array& a) { return log((a + 1.0) / (1.0 - a)) * 0.5; }

// S. Moshier, Cephes: two reductions of the argument and an odd polynomial. Arguments of quotients are kept away from
// what is not chosen, so that no gradient there is NaN.
Array arc_tangent(const Array& a) {
  constexpr double kNear = 0.41421356237309503, kFar = 2.414213562373095, kPi = std::numbers::pi;
  const Array x = abs(a), is_far = greater(x, like(a, kFar)), is_near = less_equal(x, like(a, kNear));
  const Array middle = clip(x, kNear, kFar);
  const Array far = -1.0 / maximum(x, like(a, kFar));
  const Array t = where(is_far, far, where(is_near, minimum(x, like(a, kNear)), (middle - 1.0) / (middle + 1.0)));
  const Array start = where(is_far, like(a, kPi / 2), where(is_near, like(a, 0.0), like(a, kPi / 4)));
  const Array z = square(t);
  const Array tail = ((z * 8.05374449538e-2 - 1.38776856032e-1) * z + 1.99777106478e-1) * z - 3.33329491539e-1;
  return sign(a) * (start + tail * z * t + t);
}
Array arc_sine(const Array& a) { return arc_tangent(a / sqrt((1.0 - a) * (a + 1.0))); }
Array arc_cosine(const Array& a) { return std::numbers::pi / 2 - arc_sine(a); }

}  // namespace

// |a|^b as exp(b log |a|), with the sign of odd whole powers; NaN for other powers of negative numbers.
Array power_of(const Array& a, const Array& b) {
  const Array x = abs(a);
  const Array is_whole = equal(floor(b), b), half = b * 0.5, is_odd = not_equal(floor(half), half);
  const Array size = exp(b * log(x));
  const Array minus = where(is_odd, -size, size);
  const Array below = where(is_whole, minus, like(a, std::numeric_limits<double>::quiet_NaN()));
  const Array result = where(less(a, like(a, 0.0)), below, size);
  return where(equal(b, like(b, 0.0)), like(a, 1.0), result);
}

void add_trigonometry(Registry& registry) {
  registry.insert({{"Sinh", of_one<hyperbolic_sine>}, {"Cosh", of_one<hyperbolic_cosine>}});
  registry.insert({{"Asinh", of_one<area_sine>}, {"Acosh", of_one<area_cosine>}, {"Atanh", of_one<area_tangent>}});
  registry.insert({{"Asin", of_one<arc_sine>}, {"Acos", of_one<arc_cosine>}, {"Atan", of_one<arc_tangent>}});
}

}  // namespace samebytes::onnx
