// Activations: rows of the pointwise table, and functions built from them. The rows use > or >= exactly where PyTorch
// does, because that decides the gradient at a corner. Expressions are finite for every finite operand: a term that may
// overflow is never selected or multiplied by zero.
#include <cmath>
#include <string>

#include "graph/launch.h"
#include "ops/pointwise.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

using R = PointwiseRow::Result;
using G = const GradientRequest&;
using Arrays = std::vector<Array>;

// Truth values and factors for gradients.
// clang-format off
extern const PointwiseRow kPositive, kAbove, kKeepBetween, kLeakyReluGrad;
const PointwiseRow kPositive{"positive", 1, 0, "SB_TRUTH($0 > SB_ZERO)", "Greater($0,0)", R::truth, nullptr};
const PointwiseRow kAbove{"above", 1, 2, "SB_TRUTH($0 * #0 > #1)", "Greater(Mul($0,#0),#1)", R::truth, nullptr};
// ($0 = dy, $1 = x): dy where #0 < x < #1, else 0.
const PointwiseRow kKeepBetween{"keep_between", 2, 2, "SB_WHERE(SB_TRUTH($1 > #0) * SB_TRUTH($1 < #1), $0, SB_ZERO)", nullptr, R::same, [](G g) -> Arrays {
  return {apply_row<kKeepBetween>({g.dy[0], g.src[1]}, {g.scalars[0], g.scalars[1]}), Array()}; }, 0b10};
const PointwiseRow kLeakyReluGrad{"leaky_relu_grad", 2, 1, "SB_WHERE(SB_TRUTH($1 > SB_ZERO), $0, $0 * #0)", nullptr, R::same, [](G g) -> Arrays {
  return {apply_row<kLeakyReluGrad>({g.dy[0], g.src[1]}, {g.scalars[0]}), Array()}; }, 0b10};

Array positive(const Array& x) { return apply_row<kPositive>({x}); }
Array keep_between(const Array& dy, const Array& x, double low, double high) { return apply_row<kKeepBetween>({dy, x}, {low, high}); }

constexpr double kSeluScale = 1.0507009873554804934, kSeluAlpha = 1.6732632423543772848;

extern const PointwiseRow kLeakyRelu, kPRelu, kElu, kSelu, kSoftplus, kMishGate, kRelu6, kHardSigmoid, kHardSwishSlope, kHardSwish, kLogSigmoid;
const PointwiseRow kLeakyRelu{"leaky_relu", 1, 1, "SB_WHERE(SB_TRUTH($0 > SB_ZERO), $0, $0 * #0)", "LeakyRelu[alpha=#0]($0)", R::same, [](G g) -> Arrays {
  return {apply_row<kLeakyReluGrad>({g.dy[0], g.src[0]}, {g.scalars[0]})}; }};
const PointwiseRow kPRelu{"prelu", 2, 0, "SB_WHERE(SB_TRUTH($0 > SB_ZERO), $0, $0 * $1)", "PRelu($0,$1)", R::same, [](G g) -> Arrays {
  const Array& dy = g.dy[0];
  const Array up = positive(g.src[0]);
  return {where(up, dy, dy * g.src[1]), g.wanted[1] ? masked_fill(dy * g.src[0], up, 0.0) : Array()}; }};
const PointwiseRow kElu{"elu", 1, 1, "SB_WHERE(SB_TRUTH($0 > SB_ZERO), $0, #0 * sb_expm1($0))", "Elu[alpha=#0]($0)", R::same, [](G g) -> Arrays {
  return {where(positive(g.src[0]), g.dy[0], g.dy[0] * (g.dst[0] + g.scalars[0].real))}; }};
const PointwiseRow kSelu{"selu", 1, 0,
  "SB_WHERE(SB_TRUTH($0 > SB_ZERO), $0 * REAL_C(1.0507009873554804934), REAL_C(1.7580993408473766384) * sb_expm1($0))", "Selu($0)", R::same, [](G g) -> Arrays {
  return {where(positive(g.src[0]), g.dy[0] * kSeluScale, g.dy[0] * (g.dst[0] + kSeluScale * kSeluAlpha))}; }};
// log(1 + exp(z)) = max(z, 0) + log1p(exp(-|z|)), which overflows nowhere.
const PointwiseRow kSoftplus{"softplus", 1, 2,
  "SB_WHERE(SB_TRUTH($0 * #0 > #1), $0, (SB_WHERE(SB_TRUTH($0 * #0 > SB_ZERO), $0 * #0, SB_ZERO) + sb_log1p(sb_exp(-fabs($0 * #0)))) / #0)", "Where(Greater(Mul($0,#0),#1),$0,Div(Softplus(Mul($0,#0)),#0))", R::same, [](G g) -> Arrays {
  const double beta = g.scalars[0].real;
  const Array over = apply_row<kAbove>({g.src[0]}, {g.scalars[0], g.scalars[1]});
  return {where(over, g.dy[0], g.dy[0] * sigmoid(g.src[0] * beta))}; }};
// tanh(softplus(x)) as a fraction in u = exp(-|x|).
const PointwiseRow kMishGate{"mish_gate", 1, 0,
  "SB_WHERE(SB_TRUTH($0 > SB_ZERO),"
  " (REAL_C(1.0) + REAL_C(2.0) * sb_exp(-fabs($0))) / (REAL_C(1.0) + REAL_C(2.0) * sb_exp(-fabs($0)) * (REAL_C(1.0) + sb_exp(-fabs($0)))),"
  " sb_exp(-fabs($0)) * (sb_exp(-fabs($0)) + REAL_C(2.0)) / (sb_exp(-fabs($0)) * (sb_exp(-fabs($0)) + REAL_C(2.0)) + REAL_C(2.0)))", "Tanh(Softplus($0))", R::same, [](G g) -> Arrays {
  return {g.dy[0] * ((1.0 - square(g.dst[0])) * sigmoid(g.src[0]))}; }};
const PointwiseRow kRelu6{"relu6", 1, 0,
  "SB_WHERE(SB_TRUTH($0 < SB_ZERO), SB_ZERO, SB_WHERE(SB_TRUTH($0 > REAL_C(6.0)), (SB_TYPE)(REAL_C(6.0)), $0))", "Clip($0,0,6)", R::same, [](G g) -> Arrays {
  return {keep_between(g.dy[0], g.src[0], 0.0, 6.0)}; }, 0, false, EpilogueStep::relu6};
const PointwiseRow kHardSigmoid{"hard_sigmoid", 1, 0,
  "SB_WHERE(SB_TRUTH($0 <= -REAL_C(3.0)), SB_ZERO, SB_WHERE(SB_TRUTH($0 >= REAL_C(3.0)), (SB_TYPE)(REAL_C(1.0)), ($0 + REAL_C(3.0)) * REAL_C(0.16666666666666667)))",
  "HardSigmoid[alpha=0.16666666666666666,beta=0.5]($0)", R::same, [](G g) -> Arrays { return {keep_between(g.dy[0] / 6.0, g.src[0], -3.0, 3.0)}; }};
const PointwiseRow kHardSwishSlope{"hard_swish_slope", 1, 0,
  "SB_WHERE(SB_TRUTH($0 <= -REAL_C(3.0)), SB_ZERO, SB_WHERE(SB_TRUTH($0 >= REAL_C(3.0)), (SB_TYPE)(REAL_C(1.0)), $0 * REAL_C(0.33333333333333333) + REAL_C(0.5)))",
  nullptr, R::same, [](G g) -> Arrays { return {keep_between(g.dy[0] / 3.0, g.src[0], -3.0, 3.0)}; }};
const PointwiseRow kHardSwish{"hard_swish", 1, 0,
  "SB_WHERE(SB_TRUTH($0 <= -REAL_C(3.0)), SB_ZERO, SB_WHERE(SB_TRUTH($0 >= REAL_C(3.0)), $0, $0 * (($0 + REAL_C(3.0)) * REAL_C(0.16666666666666667))))",
  "HardSwish($0)", R::same, [](G g) -> Arrays { return {g.dy[0] * apply_row<kHardSwishSlope>({g.src[0]})}; },
  0, false, EpilogueStep::hard_swish};
const PointwiseRow kLogSigmoid{"log_sigmoid", 1, 0, "SB_WHERE(SB_TRUTH($0 < SB_ZERO), $0, SB_ZERO) - sb_log1p(sb_exp(-fabs($0)))", "Neg(Softplus(Neg($0)))", R::same, [](G g) -> Arrays {
  return {g.dy[0] * sigmoid(-g.src[0])}; }};
// clang-format on

}  // namespace
}  // namespace detail

using detail::as_floating;

Array leaky_relu(const Input& a, double slope) {
  return detail::apply_row<detail::kLeakyRelu>({as_floating(a)}, {slope});
}

Array prelu(const Input& a, const Input& slope) {
  detail::require(a.defined() && a.shape().rank() >= 1, "prelu", "needs at least one axis", a, "src");
  detail::require(
      slope.defined() && is_floating(slope.dtype()) && (slope.size() == 1 || slope.shape() == Shape{a.shape().back()}),
      "prelu", ("the last axis of src " + detail::describe(a) + " needs one slope, or one each, floating").c_str(),
      slope, "slope");
  const Array x = as_floating(a);
  const Array flat = slope.size() == 1 ? reshape(slope, Shape{1}) : slope.array();
  return detail::apply_row<detail::kPRelu>({x, flat.dtype() == x.dtype() ? flat : astype(flat, x.dtype())});
}

Array elu(const Input& a, double alpha) { return detail::apply_row<detail::kElu>({as_floating(a)}, {alpha}); }
Array selu(const Input& a) { return detail::apply_row<detail::kSelu>({as_floating(a)}); }

Array softplus(const Input& a, double beta, double threshold) {
  if (beta == 0.0 || std::isnan(beta)) throw ArgumentError("softplus: beta must not be 0, got " + std::to_string(beta));
  return detail::apply_row<detail::kSoftplus>({as_floating(a)}, {beta, threshold});
}

Array mish(const Input& a) {
  const Array x = as_floating(a);
  return x * detail::apply_row<detail::kMishGate>({x});
}
Array relu6(const Input& a) { return detail::apply_row<detail::kRelu6>({as_floating(a)}); }
Array hard_sigmoid(const Input& a) { return detail::apply_row<detail::kHardSigmoid>({as_floating(a)}); }
Array hard_swish(const Input& a) { return detail::apply_row<detail::kHardSwish>({as_floating(a)}); }
Array log_sigmoid(const Input& a) { return detail::apply_row<detail::kLogSigmoid>({as_floating(a)}); }

Array glu(const Input& a, int axis) {
  detail::require(a.defined(), "glu", "needs an array", a, "src");
  const int rank = a.shape().rank();
  if (axis < -rank || axis >= rank)
    throw ArgumentError("glu: axis " + std::to_string(axis) + " is out of range for src " + detail::describe(a));
  const std::int64_t n = a.shape()[axis];
  detail::require(n % 2 == 0, "glu", ("axis " + std::to_string(axis) + " must have an even size").c_str(), a, "src");
  return slice(a, axis, 0, n / 2) * sigmoid(slice(a, axis, n / 2, n));
}

}  // namespace samebytes
