// The table of pointwise ops. A new one is a row here, a declaration in ops.h and a row in
// tests/ops/pointwise_test.cpp. Over 400 lines because it is one table.
#include "ops/pointwise.h"
#include "ops/as_value.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "ops/dtypes.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

using R = PointwiseRow::Result;
using G = const GradientRequest&;
using Arrays = std::vector<Array>;

}  // namespace

Dtype promoted(Dtype a, Dtype b) {
  if (a == b) return a;
  const auto rank = [](Dtype d) {
    switch (d) {
      case Dtype::bool_: return 0;
      case Dtype::u8: return 1;
      case Dtype::i32: return 2;
      case Dtype::i64: return 3;
      case Dtype::bf16:
      case Dtype::f16: return 4;
      case Dtype::f32: return 5;
      case Dtype::f64: return 6;
    }
    return 0;
  };
  if (rank(a) == 4 && rank(b) == 4) return Dtype::f32;  // f16 with bf16: neither holds the other
  return rank(a) > rank(b) ? a : b;
}

namespace {

// Applies a row to operands of one shape.
Array apply(const PointwiseRow& row, const OpPtr& op, std::span<const Array> inputs, std::vector<Scalar> scalars,
            Dtype asked = Dtype::f32) {
  for (const Array& input : inputs)
    if (!input.defined()) throw ArgumentError(std::string(row.name) + ": an empty array handle was passed");
  Shape shape = inputs[0].shape();
  for (std::size_t i = 1; i < inputs.size(); ++i) shape = broadcast_shapes(row.name, shape, inputs[i].shape());
  Dtype dtype = asked;
  if (row.result == R::truth) dtype = Dtype::bool_;
  if (row.result == R::same) {
    dtype = inputs[inputs.size() == 3 ? 1 : 0].dtype();  // where(condition, a, b) has the dtype of a and b
    for (std::size_t i = inputs.size() == 3 ? 2 : 1; i < inputs.size(); ++i) dtype = promoted(dtype, inputs[i].dtype());
  }
  std::array<Array, 3> wide;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    wide[i] = inputs[i].shape() == shape ? inputs[i] : broadcast_to(inputs[i], shape);
  return make_array(op, shape, dtype, std::span<const Array>(wide.data(), inputs.size()), std::move(scalars));
}

// A floating scalar makes an integer array floating.
Array floating(const Array& a) { return a.defined() && !is_floating(a.dtype()) ? astype(a, Dtype::f32) : a; }

// dy where it counts and 0 elsewhere, also for a dy that is not finite there.
Array kept(const Array& dy, const Array& counts) { return masked_fill(dy, logical_not(counts), 0.0); }

// Each operand of maximum and minimum gets the gradient where it is the result, and half of it where they are equal.
Arrays shares_of_extreme(G g, const Array& is_first) {
  const Array &a = g.src[0], &b = g.src[1], &dy = g.dy[0];
  const Array half = dy * 0.5, is_tie = equal(a, b);
  return {g.wanted[0] ? where(is_tie, half, kept(dy, is_first)) : Array(),
          g.wanted[1] ? where(is_tie, half, masked_fill(dy, is_first, 0.0)) : Array()};
}
Arrays gradient_above(G g) {  // of maximum and minimum with a number
  const double number = g.scalars[0].real;
  const Array dy = g.dy[0], is_kept = equal(g.src[0], g.dst[0]);
  return {where(equal(g.src[0], number), dy * 0.5, kept(dy, is_kept))};
}

// clang-format off
const PointwiseRow kAdd{"add", 2, 0, "$0 + $1", "Add($0,$1)", R::same, [](G g) -> Arrays { return {g.dy[0], g.dy[0]}; }, 0, false, EpilogueStep::sum};
const PointwiseRow kSub{"subtract", 2, 0, "$0 - $1", "Sub($0,$1)", R::same, [](G g) -> Arrays { return {g.dy[0], -g.dy[0]}; }};
const PointwiseRow kMul{"multiply", 2, 0, "$0 * $1", "Mul($0,$1)", R::same, [](G g) -> Arrays {
  return {g.wanted[0] ? g.dy[0] * g.src[1] : Array(), g.wanted[1] ? g.dy[0] * g.src[0] : Array()}; }};
const PointwiseRow kDiv{"divide", 2, 0, "$0 / $1", "Div($0,$1)", R::same, [](G g) -> Arrays {
  return {g.dy[0] / g.src[1], g.wanted[1] ? -(g.dy[0] * g.dst[0]) / g.src[1] : Array()}; }};
const PointwiseRow kNeg{"negative", 1, 0, "-$0", "Neg($0)", R::same, [](G g) -> Arrays { return {-g.dy[0]}; }};
const PointwiseRow kAddS{"add_scalar", 1, 1, "$0 + #0", "Add($0,#0)", R::same, [](G g) -> Arrays { return {g.dy[0]}; }};
const PointwiseRow kRsubS{"subtract_from_scalar", 1, 1, "#0 - $0", "Sub(#0,$0)", R::same, [](G g) -> Arrays { return {-g.dy[0]}; }};
const PointwiseRow kMulS{"multiply_scalar", 1, 1, "$0 * #0", "Mul($0,#0)", R::same, [](G g) -> Arrays { return {g.dy[0] * g.scalars[0].real}; }};
const PointwiseRow kDivS{"divide_scalar", 1, 1, "$0 / #0", "Div($0,#0)", R::same, [](G g) -> Arrays { return {g.dy[0] / g.scalars[0].real}; }};
const PointwiseRow kRdivS{"divide_into_scalar", 1, 1, "#0 / $0", "Div(#0,$0)", R::same, [](G g) -> Arrays { return {-(g.dy[0] * g.dst[0]) / g.src[0]}; }};
const PointwiseRow kMax{"maximum", 2, 0, "SB_WHERE(SB_TRUTH($0 >= $1) + SB_TRUTH($0 != $0), $0, $1)", "Max($0,$1)", R::same, [](G g) -> Arrays {
  return shares_of_extreme(g, greater(g.src[0], g.src[1])); }};
const PointwiseRow kMin{"minimum", 2, 0, "SB_WHERE(SB_TRUTH($0 <= $1) + SB_TRUTH($0 != $0), $0, $1)", "Min($0,$1)", R::same, [](G g) -> Arrays {
  return shares_of_extreme(g, less(g.src[0], g.src[1])); }};
const PointwiseRow kMaxS{"maximum_scalar", 1, 1, "SB_WHERE(SB_TRUTH($0 >= #0) + SB_TRUTH($0 != $0), $0, (SB_TYPE)(#0))", "Max($0,#0)", R::same, gradient_above};
const PointwiseRow kMinS{"minimum_scalar", 1, 1, "SB_WHERE(SB_TRUTH($0 <= #0) + SB_TRUTH($0 != $0), $0, (SB_TYPE)(#0))", "Min($0,#0)", R::same, gradient_above};
const PointwiseRow kFmod{"fmod", 2, 0, "sb_fmod($0, $1)", "Mod[fmod=1]($0,$1)", R::same, [](G g) -> Arrays {
  return {g.dy[0], g.wanted[1] ? -(g.dy[0] * trunc(g.src[0] / g.src[1])) : Array()}; }};
// ($0 = what fmod leaves, $1 = the divisor): whether their signs differ, and the remainder that has the divisor's sign.
#define SAMEBYTES_OTHER_SIDE "SB_TRUTH($0 < SB_ZERO) * SB_TRUTH($1 > SB_ZERO) + SB_TRUTH($0 > SB_ZERO) * SB_TRUTH($1 < SB_ZERO)"
#define SAMEBYTES_WRITTEN_SIDE "Or(And(Less($0,0),Greater($1,0)),And(Greater($0,0),Less($1,0)))"
const PointwiseRow kOtherSide{"other_side", 2, 0, SAMEBYTES_OTHER_SIDE, SAMEBYTES_WRITTEN_SIDE, R::truth, nullptr};
const PointwiseRow kOfDivisor{"remainder", 2, 0, "SB_WHERE(" SAMEBYTES_OTHER_SIDE ", $0 + $1, $0)", "Where(" SAMEBYTES_WRITTEN_SIDE ",Add($0,$1),$0)", R::same, [](G g) -> Arrays {
  return {g.dy[0], g.wanted[1] ? kept(g.dy[0], apply_row<kOtherSide>({g.src[0], g.src[1]})) : Array()}; }};
#undef SAMEBYTES_OTHER_SIDE
#undef SAMEBYTES_WRITTEN_SIDE
// Of whole numbers; by -1 and by 0 it is 0, where the processor's own would trap.
const PointwiseRow kModulo{"modulo", 2, 0,
  "$0 % SB_WHERE(SB_TRUTH($1 == SB_ZERO) + SB_TRUTH($1 == -(SB_TYPE)(1)), (SB_TYPE)(1), $1)", nullptr, R::same, nullptr, PointwiseRow::kAllFlat};
const PointwiseRow kAtan2{"atan2", 2, 0, "sb_atan2($0, $1)", nullptr, R::same, [](G g) -> Arrays {
  const Array share = g.dy[0] / (square(g.src[0]) + square(g.src[1]));
  return {g.wanted[0] ? share * g.src[1] : Array(), g.wanted[1] ? -(share * g.src[0]) : Array()}; }};
// Integer and half exponents are products and roots, of a few units in the last place; powers of reciprocals, since a
// reciprocal of a power overflows first. Each gradient is a power again, as it is at 0 and at infinity.
template <int kTwice>
Arrays pow_gradient(G g) {
  constexpr double e = kTwice / 2.0;
  return {g.dy[0] * (pow(g.src[0], e - 1.0) * e)};
}
const PointwiseRow kPow0{"pow_0", 1, 0, "(SB_TYPE)(REAL_C(1.0))", nullptr, R::same, nullptr, PointwiseRow::kAllFlat};  // of NaN too
const PointwiseRow kPowHalf{"pow_0_5", 1, 0, "sb_root($0)", "Pow($0,0.5)", R::same, pow_gradient<1>};
const PointwiseRow kPow1Half{"pow_1_5", 1, 0, "fabs($0) * sb_root($0)", "Pow($0,1.5)", R::same, pow_gradient<3>};
const PointwiseRow kPow2Half{"pow_2_5", 1, 0, "$0 * $0 * sb_root($0)", "Pow($0,2.5)", R::same, pow_gradient<5>};
const PointwiseRow kPow3Half{"pow_3_5", 1, 0, "fabs($0) * ($0 * $0) * sb_root($0)", "Pow($0,3.5)", R::same, pow_gradient<7>};
const PointwiseRow kPow3{"pow_3", 1, 0, "$0 * $0 * $0", "Pow($0,3)", R::same, pow_gradient<6>};
const PointwiseRow kPow4{"pow_4", 1, 0, "($0 * $0) * ($0 * $0)", "Pow($0,4)", R::same, pow_gradient<8>};
const PointwiseRow kPow5{"pow_5", 1, 0, "($0 * $0) * ($0 * $0) * $0", "Pow($0,5)", R::same, pow_gradient<10>};
const PointwiseRow kPow6{"pow_6", 1, 0, "($0 * $0) * ($0 * $0) * ($0 * $0)", "Pow($0,6)", R::same, pow_gradient<12>};
const PointwiseRow kPow7{"pow_7", 1, 0, "($0 * $0) * ($0 * $0) * ($0 * $0) * $0", "Pow($0,7)", R::same, pow_gradient<14>};
const PointwiseRow kPow8{"pow_8", 1, 0, "(($0 * $0) * ($0 * $0)) * (($0 * $0) * ($0 * $0))", "Pow($0,8)", R::same, pow_gradient<16>};
const PointwiseRow kPowMinusHalf{"pow_minus_0_5", 1, 0, "REAL_C(1.0) / sb_root($0)", "Pow($0,-0.5)", R::same, pow_gradient<-1>};
const PointwiseRow kPowMinus1Half{"pow_minus_1_5", 1, 0, "sb_cube(REAL_C(1.0) / sb_root($0))", "Pow($0,-1.5)", R::same, pow_gradient<-3>};
const PointwiseRow kPowMinus1{"pow_minus_1", 1, 0, "REAL_C(1.0) / $0", "Pow($0,-1)", R::same, pow_gradient<-2>};
const PointwiseRow kPowMinus2{"pow_minus_2", 1, 0, "sb_square(REAL_C(1.0) / $0)", "Pow($0,-2)", R::same, pow_gradient<-4>};
const PointwiseRow kPowMinus3{"pow_minus_3", 1, 0, "sb_cube(REAL_C(1.0) / $0)", "Pow($0,-3)", R::same, pow_gradient<-6>};
const PointwiseRow kPowMinus4{"pow_minus_4", 1, 0, "sb_square(sb_square(REAL_C(1.0) / $0))", "Pow($0,-4)", R::same, pow_gradient<-8>};
const PointwiseRow kPow{"pow", 1, 1, "sb_pow($0, #0)", "Pow($0,#0)", R::same, [](G g) -> Arrays {
  const double e = g.scalars[0].real;
  return {g.dy[0] * (pow(g.src[0], e - 1.0) * e)}; }};
const PointwiseRow kPower{"power", 2, 0, "sb_power($0, $1)", "Pow($0,$1)", R::same, [](G g) -> Arrays {
  const Array &a = g.src[0], &b = g.src[1];  // at the borders as PyTorch: no slope where the power is 0, or 0 to a power
  const auto by_base = [&] { return where(b == 0.0, 0.0, g.dy[0] * (b * pow(a, b - 1.0))); };
  const auto by_exponent = [&] {
    const Array is_zero = logical_and(a == 0.0, b >= 0.0);
    return where(is_zero, 0.0, g.dy[0] * (g.dst[0] * log(where(is_zero, 1.0, a))));
  };
  return {g.wanted[0] ? by_base() : Array(), g.wanted[1] ? by_exponent() : Array()}; }};
const PointwiseRow kExp{"exp", 1, 0, "sb_exp($0)", "Exp($0)", R::same, [](G g) -> Arrays { return {g.dy[0] * g.dst[0]}; }};
const PointwiseRow kLog{"log", 1, 0, "sb_log($0)", "Log($0)", R::same, [](G g) -> Arrays { return {g.dy[0] / g.src[0]}; }};
const PointwiseRow kExpm1{"expm1", 1, 0, "sb_expm1($0)", "Sub(Exp($0),1)", R::same, [](G g) -> Arrays { return {g.dy[0] * (g.dst[0] + 1.0)}; }};
const PointwiseRow kSqrt{"sqrt", 1, 0, "sqrt($0)", "Sqrt($0)", R::same, [](G g) -> Arrays { return {g.dy[0] * 0.5 / g.dst[0]}; }};
const PointwiseRow kRsqrt{"rsqrt", 1, 0, "REAL_C(1.0) / sqrt($0)", "Reciprocal(Sqrt($0))", R::same, [](G g) -> Arrays {
  return {g.dy[0] * (g.dst[0] * g.dst[0] * g.dst[0]) * -0.5}; }};
const PointwiseRow kSquare{"square", 1, 0, "$0 * $0", "Mul($0,$0)", R::same, [](G g) -> Arrays { return {g.dy[0] * g.src[0] * 2.0}; }};
const PointwiseRow kAbs{"abs", 1, 0, "SB_WHERE(SB_TRUTH($0 < SB_ZERO), -$0, $0)", "Abs($0)", R::same, [](G g) -> Arrays { return {g.dy[0] * sign(g.src[0])}; }};
const PointwiseRow kSin{"sin", 1, 0, "sb_sin($0)", "Sin($0)", R::same, [](G g) -> Arrays { return {g.dy[0] * cos(g.src[0])}; }};
const PointwiseRow kCos{"cos", 1, 0, "sb_cos($0)", "Cos($0)", R::same, [](G g) -> Arrays { return {-(g.dy[0] * sin(g.src[0]))}; }};
const PointwiseRow kTan{"tan", 1, 0, "sb_tan($0)", "Tan($0)", R::same, [](G g) -> Arrays { return {g.dy[0] * (square(g.dst[0]) + 1.0)}; }};
const PointwiseRow kAsin{"asin", 1, 0, "sb_asin($0)", "Asin($0)", R::same, [](G g) -> Arrays { return {g.dy[0] * rsqrt(1.0 - square(g.src[0]))}; }};
const PointwiseRow kAcos{"acos", 1, 0, "sb_acos($0)", "Acos($0)", R::same, [](G g) -> Arrays { return {-(g.dy[0] * rsqrt(1.0 - square(g.src[0])))}; }};
const PointwiseRow kAtan{"atan", 1, 0, "sb_atan($0)", "Atan($0)", R::same, [](G g) -> Arrays { return {g.dy[0] / (square(g.src[0]) + 1.0)}; }};
const PointwiseRow kSinh{"sinh", 1, 0, "sb_sinh($0)", "Sinh($0)", R::same, [](G g) -> Arrays { return {g.dy[0] * cosh(g.src[0])}; }};
const PointwiseRow kCosh{"cosh", 1, 0, "sb_cosh($0)", "Cosh($0)", R::same, [](G g) -> Arrays { return {g.dy[0] * sinh(g.src[0])}; }};
const PointwiseRow kAsinh{"asinh", 1, 0, "asinh($0)", "Asinh($0)", R::same, [](G g) -> Arrays { return {g.dy[0] * rsqrt(square(g.src[0]) + 1.0)}; }};
const PointwiseRow kAcosh{"acosh", 1, 0, "acosh($0)", "Acosh($0)", R::same, [](G g) -> Arrays { return {g.dy[0] * rsqrt(square(g.src[0]) - 1.0)}; }};
const PointwiseRow kAtanh{"atanh", 1, 0, "sb_atanh($0)", "Atanh($0)", R::same, [](G g) -> Arrays { return {g.dy[0] / (1.0 - square(g.src[0]))}; }};
const PointwiseRow kExp2{"exp2", 1, 0, "sb_exp2($0)", "Pow(2,$0)", R::same, [](G g) -> Arrays { return {g.dy[0] * g.dst[0] * 0.69314718055994531}; }};  // log 2
const PointwiseRow kLog1p{"log1p", 1, 0, "sb_log1p($0)", "Log(Add($0,1))", R::same, [](G g) -> Arrays { return {g.dy[0] / (g.src[0] + 1.0)}; }};
const PointwiseRow kLog2{"log2", 1, 0, "sb_log2($0)", "Div(Log($0),0.69314718055994531)", R::same, [](G g) -> Arrays { return {g.dy[0] / (g.src[0] * 0.69314718055994531)}; }};
const PointwiseRow kLog10{"log10", 1, 0, "sb_log10($0)", "Div(Log($0),2.3025850929940457)", R::same, [](G g) -> Arrays { return {g.dy[0] / (g.src[0] * 2.3025850929940457)}; }};  // log 10
const PointwiseRow kSign{"sign", 1, 0, "SB_TRUTH($0 > SB_ZERO) - SB_TRUTH($0 < SB_ZERO)", "Sign($0)", R::same, nullptr, PointwiseRow::kAllFlat};
const PointwiseRow kFloor{"floor", 1, 0, "floor($0)", "Floor($0)", R::same, nullptr, PointwiseRow::kAllFlat};
const PointwiseRow kCeil{"ceil", 1, 0, "ceil($0)", "Ceil($0)", R::same, nullptr, PointwiseRow::kAllFlat};
const PointwiseRow kTrunc{"trunc", 1, 0, "trunc($0)", nullptr, R::same, nullptr, PointwiseRow::kAllFlat};
const PointwiseRow kRound{"round", 1, 0, "rint($0)", "Round($0)", R::same, nullptr, PointwiseRow::kAllFlat};
const PointwiseRow kErf{"erf", 1, 0, "sb_erf($0)", "Erf($0)", R::same, [](G g) -> Arrays {
  return {g.dy[0] * exp(-square(g.src[0])) * 1.1283791670955126}; }};  // 2 / sqrt(pi)
const PointwiseRow kTanh{"tanh", 1, 0, "sb_tanh($0)", "Tanh($0)", R::same, [](G g) -> Arrays { return {g.dy[0] * (1.0 - square(g.dst[0]))}; }};
const PointwiseRow kSigmoid{"sigmoid", 1, 0, "REAL_C(1.0) / (REAL_C(1.0) + sb_exp(-$0))", "Sigmoid($0)", R::same, [](G g) -> Arrays {
  return {g.dy[0] * (g.dst[0] * (1.0 - g.dst[0]))}; }};
// relu and gelu keep their derivative as one pointwise op: of (dy, y), so that x need not be kept, and of (dy, x).
extern const PointwiseRow kReluGrad, kGeluGrad;
const PointwiseRow kReluGrad{"relu_grad", 2, 0, "SB_WHERE(SB_TRUTH($1 > SB_ZERO), $0, SB_ZERO)", nullptr, R::same, [](G g) -> Arrays {
  return {apply_row<kReluGrad>({g.dy[0], g.src[1]}), Array()}; }, 0b10, false, EpilogueStep::gate};
const PointwiseRow kReluRow{"relu", 1, 0, "SB_WHERE(SB_TRUTH($0 < SB_ZERO), SB_ZERO, $0)", "Relu($0)", R::same, [](G g) -> Arrays {
  return {relu_gradient(g.dy[0], g.dst[0])}; }, 0, false, EpilogueStep::relu};
const PointwiseRow kSilu{"silu", 1, 0, "$0 / (REAL_C(1.0) + sb_exp(-$0))", "Mul($0,Sigmoid($0))", R::same, [](G g) -> Arrays {
  const Array s = sigmoid(g.src[0]);
  return {g.dy[0] * (s * (1.0 + g.src[0] * (1.0 - s)))}; }};
const PointwiseRow kGeluRow{"gelu", 1, 0, "REAL_C(0.5) * $0 * (REAL_C(1.0) + sb_erf($0 * REAL_C(0.70710678118654752)))", "Mul(Mul($0,0.5),Add(Erf(Mul($0,0.70710678118654752)),1))", R::same, [](G g) -> Arrays {
  return {apply_row<kGeluGrad>({g.dy[0], g.src[0]})}; }};
const PointwiseRow kGeluGrad{"gelu_grad", 2, 0, "$0 * sb_gelu_slope($1)", nullptr, R::same, [](G g) -> Arrays {
  Arrays result(2);
  if (g.wanted[0]) result[0] = apply_row<kGeluGrad>({g.dy[0], g.src[1]});
  if (g.wanted[1]) {  // the slope's slope, (2 - x^2) times the normal density, which is 0 long before x^2 overflows
    const Array s = clip(square(g.src[1]), {.high = 1e5});
    result[1] = g.dy[0] * g.src[0] * ((2.0 - s) * exp(s * -0.5) * 0.39894228040143268);
  }
  return result; }};
const PointwiseRow kGeluTanh{"gelu_tanh", 1, 0,
  "REAL_C(0.5) * $0 * (REAL_C(1.0) + sb_tanh(REAL_C(0.79788456080286536) * ($0 + REAL_C(0.044715) * $0 * $0 * $0)))", "Mul(Mul($0,0.5),Add(Tanh(Mul(Add($0,Mul(Mul(Mul($0,$0),$0),0.044715)),0.79788456080286536)),1))", R::same,
  [](G g) -> Arrays {
    const Array& x = g.src[0];
    const Array t = tanh((x + x * x * x * 0.044715) * 0.79788456080286536);
    return {g.dy[0] * ((t + 1.0) * 0.5 + x * (1.0 - t * t) * (1.0 + x * x * (3 * 0.044715)) * (0.5 * 0.79788456080286536))};
  }};
const PointwiseRow kClip{"clip", 1, 2, "SB_WHERE(SB_TRUTH($0 < #0), (SB_TYPE)(#0), SB_WHERE(SB_TRUTH($0 > #1), (SB_TYPE)(#1), $0))", "Clip($0,#0,#1)", R::same,
  [](G g) -> Arrays {
    return {kept(g.dy[0], equal(g.src[0], g.dst[0]))};
  }};
// Clipped to [0, 6], which a launch before it can end with.
const PointwiseRow kClipToSix{"clip_to_six", 1, 0,
  "SB_WHERE(SB_TRUTH($0 < SB_ZERO), SB_ZERO, SB_WHERE(SB_TRUTH($0 > REAL_C(6.0)), (SB_TYPE)(REAL_C(6.0)), $0))", "Clip($0,0,6)", R::same,
  [](G g) -> Arrays {
    return {kept(g.dy[0], equal(g.src[0], g.dst[0]))};
  }, 0, false, EpilogueStep::relu6};
const PointwiseRow kEqual{"equal", 2, 0, "SB_TRUTH($0 == $1)", "Equal($0,$1)", R::truth, nullptr};
const PointwiseRow kNotEqual{"not_equal", 2, 0, "SB_TRUTH($0 != $1)", "Not(Equal($0,$1))", R::truth, nullptr};
const PointwiseRow kLess{"less", 2, 0, "SB_TRUTH($0 < $1)", "Less($0,$1)", R::truth, nullptr};
const PointwiseRow kLessEqual{"less_equal", 2, 0, "SB_TRUTH($0 <= $1)", "LessOrEqual($0,$1)", R::truth, nullptr};
const PointwiseRow kGreater{"greater", 2, 0, "SB_TRUTH($0 > $1)", "Greater($0,$1)", R::truth, nullptr};
const PointwiseRow kGreaterEqual{"greater_equal", 2, 0, "SB_TRUTH($0 >= $1)", "GreaterOrEqual($0,$1)", R::truth, nullptr};
const PointwiseRow kNot{"logical_not", 1, 0, "SB_TRUTH($0 == SB_ZERO)", "Not($0)", R::truth, nullptr};
const PointwiseRow kEqualS{"equal_scalar", 1, 1, "SB_TRUTH($0 == #0)", "Equal($0,#0)", R::truth, nullptr};
const PointwiseRow kNotEqualS{"not_equal_scalar", 1, 1, "SB_TRUTH($0 != #0)", "Not(Equal($0,#0))", R::truth, nullptr};
const PointwiseRow kLessS{"less_scalar", 1, 1, "SB_TRUTH($0 < #0)", "Less($0,#0)", R::truth, nullptr};
const PointwiseRow kLessEqualS{"less_equal_scalar", 1, 1, "SB_TRUTH($0 <= #0)", "LessOrEqual($0,#0)", R::truth, nullptr};
const PointwiseRow kGreaterS{"greater_scalar", 1, 1, "SB_TRUTH($0 > #0)", "Greater($0,#0)", R::truth, nullptr};
const PointwiseRow kGreaterEqualS{"greater_equal_scalar", 1, 1, "SB_TRUTH($0 >= #0)", "GreaterOrEqual($0,#0)", R::truth, nullptr};
const PointwiseRow kBoth{"logical_and", 2, 0, "SB_TRUTH($0 != SB_ZERO) * SB_TRUTH($1 != SB_ZERO)", "And(Not(Equal($0,0)),Not(Equal($1,0)))", R::truth, nullptr};
const PointwiseRow kEither{"logical_or", 2, 0, "SB_TRUTH($0 != SB_ZERO) + SB_TRUTH($1 != SB_ZERO)", "Or(Not(Equal($0,0)),Not(Equal($1,0)))", R::truth, nullptr};
const PointwiseRow kWhere{"where", 3, 0, "SB_WHERE($0, $1, $2)", "Where($0,$1,$2)", R::same, [](G g) -> Arrays {
  return {Array(), kept(g.dy[0], g.src[0]), masked_fill(g.dy[0], g.src[0], 0.0)}; }};
const PointwiseRow kMaskedFill{"masked_fill", 2, 1, "SB_WHERE($1, (SB_TYPE)(#0), $0)", "Where($1,#0,$0)", R::same, [](G g) -> Arrays {
  return {masked_fill(g.dy[0], g.src[1], 0.0), Array()}; }};
const PointwiseRow kCast{"astype", 1, 0, "$0", "$0", R::asked, [](G g) -> Arrays {
  return {is_floating(g.src[0].dtype()) ? as_dtype(g.dy[0], g.src[0].dtype()) : Array()}; }};
const PointwiseRow kCopy{"copy", 1, 0, "$0", "$0", R::same, [](G g) -> Arrays { return {g.dy[0]}; }, 0, false, EpilogueStep::none, true};
const PointwiseRow kStop{"stop_gradient", 1, 0, "$0", "$0", R::same, nullptr, PointwiseRow::kAllFlat, true};
// clang-format on

struct PowRow {
  double exponent;
  const PointwiseRow* row;
  OpPtr op;
};

Array unary(const PointwiseRow& row, const OpPtr& op, const Array& a, std::vector<Scalar> scalars = {}) {
  return apply(row, op, std::span<const Array>(&a, 1), std::move(scalars));
}

// How an op takes a number beside an array of whole numbers or truths: as an array of one value, whose type they share,
// or, if it is a floating one, as a scalar beside the array as f32.
bool is_whole_beside(const Array& a, const Number& number) {
  return a.defined() && !is_floating(a.dtype()) && !number.is_floating();
}
// A truth is a truth beside truths and 0 or 1 beside numbers; a whole number makes truths i32.
Array whole_beside(const char* op, const Array& a, const Number& number) {
  const Dtype dtype = a.dtype() == bool_ && !number.is_truth() ? i32 : a.dtype();
  if (!is_representable(number, dtype))
    throw ArgumentError(std::string(op) + ": the number must fit " + std::string(name_of(dtype)) + ", got " +
                        text_of(number) + "; convert a with astype(a, " +
                        std::string(name_of(is_representable(number, i32)   ? i32
                                            : is_representable(number, i64) ? i64
                                                                            : f64)) +
                        "), a is " + describe(a));
  return full({}, number, dtype);
}
// Comparisons with numbers that the type does not hold are right, too.
Array compared_beside(const char* op, const Array& a, const Number& number) {
  if (!is_representable(number, i32) && is_representable(number, i64)) return full({}, number, i64);
  return whole_beside(op, a.dtype() == u8 ? astype(a, i32) : a, number);
}

Array binary(const PointwiseRow& row, const OpPtr& op, const Array& a, const Array& b) {
  const Array inputs[] = {a, b};
  return apply(row, op, inputs, {});
}

}  // namespace

namespace {

OpTraits traits_of(const PointwiseRow& row) {
  return {.takes_strides = InputSet::all(),
          .is_flat = row.result == PointwiseRow::Result::truth ? InputSet::all() : InputSet::of_bits(row.flat),
          .expression = row.expression,
          .epilogue_step = row.epilogue_step,
          .is_copy = row.is_copy,
          .cuts_gradient = row.is_cut};
}

OpTraits traits_of(std::vector<std::int64_t> offsets, std::int64_t n, Pack::Into into) {
  const int cell = static_cast<int>(offsets.size());
  const bool fills_cell = into == Pack::Into::cell;
  return {.takes_strides = InputSet::all(),
          .is_state = InputSet::from(cell),
          .in_place = fills_cell ? ResultsInInputs{.result = 0, .input = cell} : ResultsInInputs{},
          .updates_cell = fills_cell,
          .pack = std::make_shared<const PackLayout>(
              PackLayout{.offsets = std::move(offsets), .n = n, .is_released = into == Pack::Into::released})};
}

}  // namespace

Pointwise::Pointwise(const PointwiseRow& row) : Op(traits_of(row)), row_(row) {}

void Pointwise::launch(Launch&) const {
  throw Error(std::string(row_.name) + ": pointwise nodes are launched by the planner");
}
void Update::launch(Launch&) const { throw Error("update: launched by the planner"); }
void Pack::launch(Launch&) const { throw Error("pack: launched by the planner"); }

std::vector<Array> Pointwise::gradient(const GradientRequest& g) const {
  return row_.gradient ? row_.gradient(g) : Op::gradient(g);
}

Pack::Pack(std::vector<std::int64_t> offsets, std::int64_t n, std::vector<std::int64_t> sizes, Into into)
    : Op(traits_of(std::move(offsets), n, into)), sizes_(std::move(sizes)), into_(into) {}

void Pack::hash(Hasher& hasher) const {
  for (const std::int64_t offset : layout().offsets) hasher.add(static_cast<std::uint64_t>(offset));
  hasher.add(static_cast<std::uint64_t>(layout().n));
  hasher.add(static_cast<std::uint64_t>(into_));
  for (const std::int64_t size : sizes_) hasher.add(static_cast<std::uint64_t>(size));
}

std::vector<Array> Pack::gradient(const GradientRequest& g) const {
  std::vector<Array> result;
  const std::vector<std::int64_t>& offsets = layout().offsets;
  for (std::size_t i = 0; i < offsets.size(); ++i)
    result.push_back(reshape(slice(g.dy[0], 0, offsets[i], offsets[i] + g.src[i].size()), g.src[i].shape()));
  result.resize(g.src.size());
  return result;
}

}  // namespace detail

using detail::OpPtr;
using detail::Pointwise;

// Each op object is made once and shared by all its nodes.
#define SAMEBYTES_ROW(row)                                           \
  [] {                                                               \
    static const OpPtr op = detail::make_op<Pointwise>(detail::row); \
    return op;                                                       \
  }()
#define SAMEBYTES_UNARY(function, row) \
  Array function(const Input& a) { return detail::unary(detail::row, SAMEBYTES_ROW(row), detail::floating(a)); }
#define SAMEBYTES_BINARY(function, row) \
  Array function(const Input& a, const Input& b) { return detail::binary(detail::row, SAMEBYTES_ROW(row), a, b); }
#define SAMEBYTES_BINARY_REAL(function, row)                                                          \
  Array function(const Input& a, const Input& b) {                                                    \
    if (a.defined() && b.defined() && (is_floating(a.dtype()) || is_floating(b.dtype())))             \
      return detail::binary(detail::row, SAMEBYTES_ROW(row), a, b);                                   \
    return detail::binary(detail::row, SAMEBYTES_ROW(row), detail::floating(a), detail::floating(b)); \
  }
// What is a whole number stays one.
#define SAMEBYTES_ROUNDING(function, row)                                   \
  Array function(const Input& a) {                                          \
    if (a.defined() && !is_floating(a.dtype())) return detail::as_value(a); \
    return detail::unary(detail::row, SAMEBYTES_ROW(row), a);               \
  }
#define SAMEBYTES_COMPARISON(function, row, row_with_scalar)                                         \
  SAMEBYTES_BINARY(function, row)                                                                    \
  Array function(const Input& a, const Number& b) {                                                  \
    if (detail::is_whole_beside(a, b)) return function(a, detail::compared_beside(#function, a, b)); \
    return SAMEBYTES_WITH_SCALAR(row_with_scalar, a, b.value());                                     \
  }
#define SAMEBYTES_WITH_SCALAR(row, a, ...) \
  detail::unary(detail::row, SAMEBYTES_ROW(row), detail::floating(a), {__VA_ARGS__})

SAMEBYTES_BINARY(operator+, kAdd)
SAMEBYTES_BINARY(operator-, kSub)
SAMEBYTES_BINARY(operator*, kMul)
SAMEBYTES_BINARY_REAL(operator/, kDiv)
Array operator-(const Input& a) { return detail::unary(detail::kNeg, SAMEBYTES_ROW(kNeg), a); }
Array operator+(const Input& a, const Number& b) {
  if (detail::is_whole_beside(a, b)) return a + detail::whole_beside("add", a, b);
  return SAMEBYTES_WITH_SCALAR(kAddS, a, b.value());
}
Array operator-(const Input& a, const Number& b) {
  if (detail::is_whole_beside(a, b)) return a - detail::whole_beside("subtract", a, b);
  return SAMEBYTES_WITH_SCALAR(kAddS, a, -b.value());
}
Array operator*(const Input& a, const Number& b) {
  if (detail::is_whole_beside(a, b)) return a * detail::whole_beside("multiply", a, b);
  return SAMEBYTES_WITH_SCALAR(kMulS, a, b.value());
}
Array operator/(const Input& a, const Number& b) { return SAMEBYTES_WITH_SCALAR(kDivS, a, b.value()); }
Array operator+(const Number& a, const Input& b) { return b + a; }
Array operator-(const Number& a, const Input& b) {
  if (detail::is_whole_beside(b, a)) return detail::whole_beside("subtract", b, a) - b;
  return SAMEBYTES_WITH_SCALAR(kRsubS, b, a.value());
}
Array operator*(const Number& a, const Input& b) { return b * a; }
Array operator/(const Number& a, const Input& b) { return SAMEBYTES_WITH_SCALAR(kRdivS, b, a.value()); }
SAMEBYTES_BINARY(maximum, kMax)
SAMEBYTES_BINARY(minimum, kMin)
Array maximum(const Input& a, const Number& b) {
  if (detail::is_whole_beside(a, b)) return maximum(a, detail::whole_beside("maximum", a, b));
  return SAMEBYTES_WITH_SCALAR(kMaxS, a, b.value());
}
Array maximum(const Number& a, const Input& b) { return maximum(b, a); }
Array minimum(const Input& a, const Number& b) {
  if (detail::is_whole_beside(a, b)) return minimum(a, detail::whole_beside("minimum", a, b));
  return SAMEBYTES_WITH_SCALAR(kMinS, a, b.value());
}
Array minimum(const Number& a, const Input& b) { return minimum(b, a); }
Array fmod(const Input& a, const Input& b) {
  const bool is_whole = a.defined() && b.defined() && !is_floating(a.dtype()) && !is_floating(b.dtype());
  return is_whole ? detail::binary(detail::kModulo, SAMEBYTES_ROW(kModulo), a, b)
                  : detail::binary(detail::kFmod, SAMEBYTES_ROW(kFmod), a, b);
}
Array remainder(const Input& a, const Input& b) {
  Array rest = fmod(a, b);
  if (rest.dtype() == u8 || rest.dtype() == bool_) return rest;
  return detail::binary(detail::kOfDivisor, SAMEBYTES_ROW(kOfDivisor), rest, b);
}
// A number as an array that the array's type takes.
static Array beside(const char* op, const Array& a, const Number& number) {
  detail::require(a.defined(), op, "needs an array", a, "src");
  if (detail::is_whole_beside(a, number)) return detail::whole_beside(op, a, number);
  return full({}, number, is_floating(a.dtype()) ? a.dtype() : f32);
}
Array fmod(const Input& a, const Number& b) { return fmod(a, beside("fmod", a, b)); }
Array remainder(const Input& a, const Number& b) { return remainder(a, beside("remainder", a, b)); }
SAMEBYTES_BINARY_REAL(atan2, kAtan2)
const detail::CastRow kPowCast{"pow", CastRule::keep_f32};
Array pow(const Input& a, double exponent) {
  if (const detail::Casts cast(kPowCast); cast) return pow(cast(a), exponent);
  Array x = detail::floating(a);
  if (!x.defined()) return SAMEBYTES_WITH_SCALAR(kPow, a, exponent);
  if (exponent == 1.0) return detail::as_value(x);
  if (exponent == 2.0) return square(x);
  static const detail::PowRow kRows[] = {
      {0.0, &detail::kPow0, detail::make_op<Pointwise>(detail::kPow0)},
      {0.5, &detail::kPowHalf, detail::make_op<Pointwise>(detail::kPowHalf)},
      {1.5, &detail::kPow1Half, detail::make_op<Pointwise>(detail::kPow1Half)},
      {2.5, &detail::kPow2Half, detail::make_op<Pointwise>(detail::kPow2Half)},
      {3.5, &detail::kPow3Half, detail::make_op<Pointwise>(detail::kPow3Half)},
      {3.0, &detail::kPow3, detail::make_op<Pointwise>(detail::kPow3)},
      {4.0, &detail::kPow4, detail::make_op<Pointwise>(detail::kPow4)},
      {5.0, &detail::kPow5, detail::make_op<Pointwise>(detail::kPow5)},
      {6.0, &detail::kPow6, detail::make_op<Pointwise>(detail::kPow6)},
      {7.0, &detail::kPow7, detail::make_op<Pointwise>(detail::kPow7)},
      {8.0, &detail::kPow8, detail::make_op<Pointwise>(detail::kPow8)},
      {-0.5, &detail::kPowMinusHalf, detail::make_op<Pointwise>(detail::kPowMinusHalf)},
      {-1.5, &detail::kPowMinus1Half, detail::make_op<Pointwise>(detail::kPowMinus1Half)},
      {-1.0, &detail::kPowMinus1, detail::make_op<Pointwise>(detail::kPowMinus1)},
      {-2.0, &detail::kPowMinus2, detail::make_op<Pointwise>(detail::kPowMinus2)},
      {-3.0, &detail::kPowMinus3, detail::make_op<Pointwise>(detail::kPowMinus3)},
      {-4.0, &detail::kPowMinus4, detail::make_op<Pointwise>(detail::kPowMinus4)},
  };
  for (const detail::PowRow& known : kRows)
    if (exponent == known.exponent) return detail::unary(*known.row, known.op, x);
  return SAMEBYTES_WITH_SCALAR(kPow, x, exponent);
}
const detail::CastRow kExpCast{"exp", CastRule::keep_f32};
Array exp(const Input& a) {
  if (const detail::Casts cast(kExpCast); cast) return exp(cast(a));
  return detail::unary(detail::kExp, SAMEBYTES_ROW(kExp), detail::floating(a));
}
const detail::CastRow kLogCast{"log", CastRule::keep_f32};
Array log(const Input& a) {
  if (const detail::Casts cast(kLogCast); cast) return log(cast(a));
  return detail::unary(detail::kLog, SAMEBYTES_ROW(kLog), detail::floating(a));
}
SAMEBYTES_UNARY(expm1, kExpm1)
SAMEBYTES_UNARY(exp2, kExp2)
SAMEBYTES_UNARY(log1p, kLog1p)
SAMEBYTES_UNARY(log2, kLog2)
SAMEBYTES_UNARY(log10, kLog10)
SAMEBYTES_UNARY(asin, kAsin)
SAMEBYTES_UNARY(acos, kAcos)
SAMEBYTES_UNARY(atan, kAtan)
SAMEBYTES_UNARY(sinh, kSinh)
SAMEBYTES_UNARY(cosh, kCosh)
SAMEBYTES_UNARY(asinh, kAsinh)
SAMEBYTES_UNARY(acosh, kAcosh)
SAMEBYTES_UNARY(atanh, kAtanh)
SAMEBYTES_UNARY(tan, kTan)
Array reciprocal(const Input& a) { return 1.0 / a; }
SAMEBYTES_UNARY(sqrt, kSqrt)
SAMEBYTES_UNARY(rsqrt, kRsqrt)
Array square(const Input& a) { return detail::unary(detail::kSquare, SAMEBYTES_ROW(kSquare), a); }
Array abs(const Input& a) { return detail::unary(detail::kAbs, SAMEBYTES_ROW(kAbs), a); }
SAMEBYTES_UNARY(sin, kSin)
SAMEBYTES_UNARY(cos, kCos)
Array sign(const Input& a) { return detail::unary(detail::kSign, SAMEBYTES_ROW(kSign), a); }
SAMEBYTES_ROUNDING(floor, kFloor)
SAMEBYTES_ROUNDING(ceil, kCeil)
SAMEBYTES_ROUNDING(trunc, kTrunc)
SAMEBYTES_ROUNDING(round, kRound)
SAMEBYTES_UNARY(erf, kErf)
SAMEBYTES_UNARY(tanh, kTanh)
SAMEBYTES_UNARY(sigmoid, kSigmoid)
SAMEBYTES_UNARY(silu, kSilu)

Array relu(const Input& a) { return detail::unary(detail::kReluRow, SAMEBYTES_ROW(kReluRow), a); }
Array gelu(const Input& a, GeluForm form) {
  const Array x = detail::floating(a);
  return form == GeluForm::exact ? detail::unary(detail::kGeluRow, SAMEBYTES_ROW(kGeluRow), x)
                                 : detail::unary(detail::kGeluTanh, SAMEBYTES_ROW(kGeluTanh), x);
}
Array clip(const Input& a, const ClipBounds& bounds) {
  if (!bounds.low && !bounds.high) throw ArgumentError("clip: expected a lower or an upper bound, got none");
  constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  return clip(a, bounds.low.value_or(-kUnbounded), bounds.high.value_or(kUnbounded));
}
Array clip(const Input& a, const Number& low, const Number& high) {
  const double most = high.value(), least = std::min(low.value(), most);  // the upper bound has the last word
  if (std::isnan(low.value()) || std::isnan(most))
    throw ArgumentError("clip: the bounds must be numbers, got " + std::to_string(low.value()) + " and " +
                        std::to_string(most));
  if (!a.defined() || is_floating(a.dtype()) || low.is_floating() || high.is_floating())
    return least == 0 && most == 6 ? SAMEBYTES_WITH_SCALAR(kClipToSix, a)
                                   : SAMEBYTES_WITH_SCALAR(kClip, a, least, most);
  return minimum(maximum(a, low), high);
}
SAMEBYTES_COMPARISON(equal, kEqual, kEqualS)
SAMEBYTES_COMPARISON(not_equal, kNotEqual, kNotEqualS)
SAMEBYTES_COMPARISON(less, kLess, kLessS)
SAMEBYTES_COMPARISON(less_equal, kLessEqual, kLessEqualS)
SAMEBYTES_COMPARISON(greater, kGreater, kGreaterS)
SAMEBYTES_COMPARISON(greater_equal, kGreaterEqual, kGreaterEqualS)
Array where(const Input& condition, const Input& a, const Input& b) {
  detail::require(condition.defined() && condition.dtype() == bool_, "where", "the condition must be bool", condition,
                  "condition");
  const Array inputs[] = {condition, a, b};
  return detail::apply(detail::kWhere, SAMEBYTES_ROW(kWhere), inputs, {});
}
Array where(const Input& condition, const Input& a, const Number& b) {
  return where(condition, a, beside("where", a, b));
}
Array where(const Input& condition, const Number& a, const Input& b) {
  return where(condition, beside("where", b, a), b);
}
static Array truths(const char* op, const Input& a) {
  detail::require(a.defined(), op, "needs an array", a, "src");
  return astype(a, bool_);
}
// Whether both are numbers of one kind, so that one row reads them as truths.
static bool are_alike(const Input& a, const Input& b) {
  return a.defined() && b.defined() && a.dtype() == b.dtype() && is_floating(a.dtype());
}
Array logical_and(const Input& a, const Input& b) {
  if (are_alike(a, b)) return detail::apply_row<detail::kBoth>({a, b});
  return minimum(truths("logical_and", a), truths("logical_and", b));
}
Array logical_or(const Input& a, const Input& b) {
  if (are_alike(a, b)) return detail::apply_row<detail::kEither>({a, b});
  return maximum(truths("logical_or", a), truths("logical_or", b));
}
Array logical_xor(const Input& a, const Input& b) {
  return not_equal(truths("logical_xor", a), truths("logical_xor", b));
}
Array logical_not(const Input& a) { return detail::unary(detail::kNot, SAMEBYTES_ROW(kNot), truths("logical_not", a)); }
static const Input& only_truths(const char* op, const Input& a) {
  detail::require(a.defined() && a.dtype() == bool_, op,
                  "needs bool arrays; logical_and, logical_or, logical_xor and "
                  "logical_not take others",
                  a, "src");
  return a;
}
Array operator&(const Input& a, const Input& b) {
  return logical_and(only_truths("operator&", a), only_truths("operator&", b));
}
Array operator|(const Input& a, const Input& b) {
  return logical_or(only_truths("operator|", a), only_truths("operator|", b));
}
Array operator^(const Input& a, const Input& b) {
  return logical_xor(only_truths("operator^", a), only_truths("operator^", b));
}
Array operator!(const Input& a) { return logical_not(only_truths("operator!", a)); }
Array isnan(const Input& a) { return not_equal(a, a); }
Array isinf(const Input& a) {
  detail::require(a.defined(), "isinf", "needs an array", a, "src");
  return equal(abs(detail::floating(a)), std::numeric_limits<double>::infinity());
}
Array isfinite(const Input& a) {
  detail::require(a.defined(), "isfinite", "needs an array", a, "src");
  return less(abs(detail::floating(a)), std::numeric_limits<double>::infinity());
}
Array masked_fill(const Input& a, const Input& mask, const Number& value) {
  detail::require(mask.defined() && mask.dtype() == bool_, "masked_fill", "the mask must be bool", mask, "mask");
  detail::require(a.defined(), "masked_fill", "needs an array", a, "src");
  if (!is_floating(a.dtype())) return where(mask, full({}, value, a.dtype()), a);
  const Array inputs[] = {a, mask};
  return detail::apply(detail::kMaskedFill, SAMEBYTES_ROW(kMaskedFill), inputs, {value.value()});
}
Array astype(const Input& a, Dtype dtype) {
  if (a.defined() && a.dtype() == dtype) return detail::as_value(a);
  return detail::apply(detail::kCast, SAMEBYTES_ROW(kCast), std::span<const Array>(&a.array(), 1), {}, dtype);
}
Array stop_gradient(const Input& a) { return detail::unary(detail::kStop, SAMEBYTES_ROW(kStop), a); }

namespace detail {
Array copy_of(const Array& a) { return unary(kCopy, SAMEBYTES_ROW(kCopy), a); }
Array apply_row(const PointwiseRow& row, const OpPtr& op, std::initializer_list<Array> operands,
                std::vector<Scalar> scalars) {
  return apply(row, op, std::span<const Array>(operands.begin(), operands.size()), std::move(scalars));
}
Array as_floating(const Array& a) { return floating(a); }
Array relu_gradient(const Array& dy, const Array& y) { return apply_row<kReluGrad>({dy, y}); }
Array relu_gradient_source(const Array& gradient, const Array& x) {
  const auto row_of = [](const Node& node) -> const PointwiseRow* {
    const auto* op = node.is_view ? nullptr : dynamic_cast<const Pointwise*>(node.op.get());
    return op ? &op->row() : nullptr;
  };
  const Node& node = *gradient.node();
  if (row_of(node) != &kReluGrad) return {};
  const Node& y = *node.inputs[1].node;
  if (row_of(y) != &kReluRow || y.inputs[0].node != x.node()) return {};
  return Array(node.inputs[0].node);
}
}  // namespace detail

#undef SAMEBYTES_WITH_SCALAR
#undef SAMEBYTES_COMPARISON
#undef SAMEBYTES_ROUNDING
Array pow(const Input& a, const Input& b) {
  if (const detail::Casts cast(kPowCast); cast) return pow(cast(a), cast(b));
  if (a.defined() && b.defined() && (is_floating(a.dtype()) || is_floating(b.dtype())))
    return detail::binary(detail::kPower, SAMEBYTES_ROW(kPower), a, b);
  return detail::binary(detail::kPower, SAMEBYTES_ROW(kPower), detail::floating(a), detail::floating(b));
}
Array pow(const Number& base, const Input& exponent) {
  return pow(full({}, base, is_floating(exponent.dtype()) ? exponent.dtype() : f32), exponent);
}

#undef SAMEBYTES_BINARY_REAL
#undef SAMEBYTES_BINARY
#undef SAMEBYTES_UNARY
#undef SAMEBYTES_ROW

}  // namespace samebytes
