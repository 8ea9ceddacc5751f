// Pointwise ops.
#include "samebytes/ops.h"
#include "sweep_ops/sweep.h"

namespace samebytes::benchmarks {
namespace {

using Unary = std::function<Array(const Array&)>;
using Binary = std::function<Array(const Array&, const Array&)>;

}  // namespace

void add_pointwise(std::vector<Row>& rows) {
  const auto one = [&](const char* name, Unary f, double low = -3, double high = 3) {
    rows.push_back({name, [=](int s) {
                      return takes_gradient({values(plane(s), low, high)}, [=](Inputs x) { return f(x[0]); });
                    }});
  };
  const auto step = [&](const char* name, Unary f) {
    rows.push_back(
        {name, [=](int s) { return no_gradient({values(plane(s), -3, 3)}, [=](Inputs x) { return f(x[0]); }); }});
  };
  const auto two = [&](const char* name, Binary f) {
    rows.push_back(
        {name, [=](int s) {
           return takes_gradient({values(plane(s)), values(plane(s), 0.5, 2)}, [=](Inputs x) { return f(x[0], x[1]); });
         }});
  };
  const auto compare = [&](const char* name, Binary f) {
    rows.push_back({name, [=](int s) {
                      return no_gradient({values(plane(s)), values(plane(s))}, [=](Inputs x) { return f(x[0], x[1]); });
                    }});
  };
  two("operator+", [](const Array& a, const Array& b) { return a + b; });
  two("operator-", [](const Array& a, const Array& b) { return a - b; });
  two("operator*", [](const Array& a, const Array& b) { return a * b; });
  two("operator/", [](const Array& a, const Array& b) { return a / b; });
  one("operator-/negative", [](const Array& a) { return -a; });
  one("operator+/scalar", [](const Array& a) { return a + 1.5; });
  one("operator-/from_scalar", [](const Array& a) { return 1.5 - a; });
  one("operator*/scalar", [](const Array& a) { return a * 1.5; });
  one("operator//scalar", [](const Array& a) { return a / 1.5; });
  one(
      "operator//into_scalar", [](const Array& a) { return 1.5 / a; }, 0.5, 3);
  rows.push_back({"operator+/row", [](int s) {
                    const Shape shape = plane(s);
                    return takes_gradient({values(shape), values({shape[1]})}, [](Inputs x) { return x[0] + x[1]; });
                  }});
  rows.push_back({"operator*/column", [](int s) {
                    const Shape shape = plane(s);
                    return takes_gradient({values(shape), values({shape[0], 1})}, [](Inputs x) { return x[0] * x[1]; });
                  }});
  two("remainder", [](const Array& a, const Array& b) { return remainder(a, b); });
  two("fmod", [](const Array& a, const Array& b) { return fmod(a, b); });
  two("pow/array", [](const Array& a, const Array& b) { return pow(abs(a), b); });
  two("atan2", [](const Array& a, const Array& b) { return atan2(a, b); });
  one(
      "exp2", [](const Array& a) { return exp2(a); }, -3, 3);
  one(
      "log1p", [](const Array& a) { return log1p(a); }, 0.1, 3);
  one(
      "log2", [](const Array& a) { return log2(a); }, 0.1, 3);
  one(
      "log10", [](const Array& a) { return log10(a); }, 0.1, 3);
  one(
      "reciprocal", [](const Array& a) { return reciprocal(a); }, 0.5, 3);
  one(
      "tan", [](const Array& a) { return tan(a); }, -1, 1);
  one(
      "asin", [](const Array& a) { return asin(a); }, -0.9, 0.9);
  one(
      "acos", [](const Array& a) { return acos(a); }, -0.9, 0.9);
  one(
      "atan", [](const Array& a) { return atan(a); }, -3, 3);
  one(
      "sinh", [](const Array& a) { return sinh(a); }, -3, 3);
  one(
      "cosh", [](const Array& a) { return cosh(a); }, -3, 3);
  one(
      "asinh", [](const Array& a) { return asinh(a); }, -3, 3);
  one(
      "acosh", [](const Array& a) { return acosh(a); }, 1.1, 3);
  one(
      "atanh", [](const Array& a) { return atanh(a); }, -0.9, 0.9);
  step("ceil", [](const Array& a) { return ceil(a); });
  step("trunc", [](const Array& a) { return trunc(a); });
  step("isnan", [](const Array& a) { return isnan(a); });
  step("isinf", [](const Array& a) { return isinf(a); });
  step("isfinite", [](const Array& a) { return isfinite(a); });
  step("logical_not", [](const Array& a) { return logical_not(a); });
  step("operator!", [](const Array& a) { return !(a > 0); });
  compare("logical_and", [](const Array& a, const Array& b) { return logical_and(a, b); });
  compare("logical_or", [](const Array& a, const Array& b) { return logical_or(a, b); });
  compare("logical_xor", [](const Array& a, const Array& b) { return logical_xor(a, b); });
  compare("operator&", [](const Array& a, const Array& b) { return (a > 0) & (b > 0); });
  compare("operator|", [](const Array& a, const Array& b) { return (a > 0) | (b > 0); });
  compare("operator^", [](const Array& a, const Array& b) { return (a > 0) ^ (b > 0); });
  compare("operator<", [](const Array& a, const Array& b) { return a < b; });
  compare("operator>", [](const Array& a, const Array& b) { return a > b; });
  two("maximum", [](const Array& a, const Array& b) { return maximum(a, b); });
  two("minimum", [](const Array& a, const Array& b) { return minimum(a, b); });
  one(
      "pow", [](const Array& a) { return pow(a, 1.7); }, 0.5, 3);
  one("pow/cube", [](const Array& a) { return pow(a, 3.0); });
  one("exp", [](const Array& a) { return exp(a); });
  one("expm1", [](const Array& a) { return expm1(a); });
  one(
      "log", [](const Array& a) { return log(a); }, 0.1, 3);
  one(
      "sqrt", [](const Array& a) { return sqrt(a); }, 0.1, 3);
  one(
      "rsqrt", [](const Array& a) { return rsqrt(a); }, 0.1, 3);
  one("square", [](const Array& a) { return square(a); });
  one("abs", [](const Array& a) { return abs(a); });
  one("sin", [](const Array& a) { return sin(a); });
  one("cos", [](const Array& a) { return cos(a); });
  step("sign", [](const Array& a) { return sign(a); });
  step("floor", [](const Array& a) { return floor(a); });
  step("round", [](const Array& a) { return round(a); });
  one("erf", [](const Array& a) { return erf(a); });
  one("tanh", [](const Array& a) { return tanh(a); });
  one("sigmoid", [](const Array& a) { return sigmoid(a); });
  one("relu", [](const Array& a) { return relu(a); });
  one("silu", [](const Array& a) { return silu(a); });
  one("gelu", [](const Array& a) { return gelu(a); });
  one("gelu/tanh", [](const Array& a) { return gelu(a, GeluForm::tanh); });
  one("leaky_relu", [](const Array& a) { return leaky_relu(a); });
  rows.push_back({"prelu", [](int s) {
                    const Shape shape = plane(s);
                    return takes_gradient({values(shape), values({shape[1]}, 0.1, 0.3)},
                                          [](Inputs x) { return prelu(x[0], x[1]); });
                  }});
  one("elu", [](const Array& a) { return elu(a); });
  one("selu", [](const Array& a) { return selu(a); });
  one("softplus", [](const Array& a) { return softplus(a); });
  one("mish", [](const Array& a) { return mish(a); });
  one("relu6", [](const Array& a) { return relu6(a); });
  one("hard_sigmoid", [](const Array& a) { return hard_sigmoid(a); });
  one("hard_swish", [](const Array& a) { return hard_swish(a); });
  one("log_sigmoid", [](const Array& a) { return log_sigmoid(a); });
  one("glu", [](const Array& a) { return glu(a); });
  one("clip", [](const Array& a) { return clip(a, -1, 1); });
  one("clip/below", [](const Array& a) { return clip(a, ClipBounds{.low = -1.0}); });
  compare("equal", [](const Array& a, const Array& b) { return equal(a, b); });
  compare("not_equal", [](const Array& a, const Array& b) { return not_equal(a, b); });
  compare("less", [](const Array& a, const Array& b) { return less(a, b); });
  compare("less_equal", [](const Array& a, const Array& b) { return less_equal(a, b); });
  compare("greater", [](const Array& a, const Array& b) { return greater(a, b); });
  compare("greater_equal", [](const Array& a, const Array& b) { return greater_equal(a, b); });
  rows.push_back({"where", [](int s) {
                    return Case{{values(plane(s)), values(plane(s)), truths(plane(s))}, 2, [](Inputs x) {
                                  return Results{where(x[2], x[0], x[1])};
                                }};
                  }});
  rows.push_back({"masked_fill", [](int s) {
                    return Case{{values(plane(s)), truths(plane(s))}, 1, [](Inputs x) {
                                  return Results{masked_fill(x[0], x[1], 2.0)};
                                }};
                  }});
  one("astype/bf16", [](const Array& a) { return astype(a, bf16); });
  one("astype/f16", [](const Array& a) { return astype(a, f16); });
  step("astype/i32", [](const Array& a) { return astype(a, i32); });
  step("astype/f64", [](const Array& a) { return astype(a, f64); });
}

}  // namespace samebytes::benchmarks
