// Functions of f32 as texts that C++ and OpenCL C both read: on the device of vectors of VW floats, on the host of one
// float, which its compiler makes vectors of. Both round after each step in the same way, so they give the same bits.
// Where kernels are scalar (VW 1) or compute in double, the names are those of OpenCL's built-in functions, and the
// host has no form of them. Errors are in units in the last place of the result, over all floats; zeros keep their
// sign, NaN stays NaN, and infinities and values out of range give what C's functions give.
#if defined(__cplusplus) && !defined(SAMEBYTES_KERNEL_TEXT)
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace samebytes::detail {
#define as_int(x) std::bit_cast<std::int32_t>(x)
#define SB_FLOATS float
#define SB_INTS std::int32_t
#define SB_ALL(x) (x)
#define SB_PICK(condition, yes, no) ((condition) ? (yes) : (no))
#define SB_WORD_OF(x) std::bit_cast<std::int32_t>(x)
#define SB_FLOAT_OF(bits) std::bit_cast<float>(bits)
#define SB_NUMBER(n) static_cast<float>(n)
#define SB_MAGNITUDE(x) SB_FLOAT_OF(SB_WORD_OF(x) & 0x7fffffff)
#define SB_LONG std::int64_t
#define SB_ULONG std::uint64_t
#define SB_INFINITY std::numeric_limits<float>::infinity()
#define SB_ROOT(x) __builtin_sqrtf(x)
#define SB_FUNCTION static inline __attribute__((always_inline))  // else the loops around them have no vectors
#define FMA(a, b, c) __builtin_fmaf(a, b, c)
#elif VW == 1 || defined(SAMEBYTES_F64)
#define sb_exp(x) exp(x)
#define sb_expm1(x) expm1(x)
#define sb_log(x) log(x)
#define sb_log_of(x) log(x)
#define sb_log1p(x) log1p(x)
#define sb_tanh(x) tanh(x)
#define sb_erf(x) erf(x)
#define sb_exp2(x) exp2(x)
#define sb_log2(x) log2(x)
#define sb_log10(x) log10(x)
#define sb_sinh(x) sinh(x)
#define sb_cosh(x) cosh(x)
#define sb_atanh(x) atanh(x)
#define sb_asin(x) asin(x)
#define sb_acos(x) acos(x)
#define sb_atan(x) atan(x)
#define sb_atan2(y, x) atan2(y, x)
static inline vreal sb_gelu_slope(const vreal x) {
  return REAL_C(0.5) * (REAL_C(1.0) + erf(x * REAL_C(0.70710678118654752))) +
         x * exp(REAL_C(-0.5) * x * x) * REAL_C(0.39894228040143268);
}
#else
#define SB_FLOATS vreal
#define SB_INTS SB_JOIN(int, VW)
#define SB_ALL(x) ((vreal)(x))
#define SB_PICK(condition, yes, no) select((no), (yes), (condition))
#define SB_WORD_OF(x) SB_JOIN(as_int, VW)(x)
#define SB_FLOAT_OF(bits) SB_JOIN(as_float, VW)(bits)
#define SB_NUMBER(n) SB_JOIN(convert_float, VW)(n)
#define SB_MAGNITUDE(x) fabs(x)
#define SB_LONG long
#define SB_ULONG ulong
#define SB_INFINITY INFINITY
#define SB_ROOT(x) sqrt(x)
#define SB_FUNCTION static inline
#endif

#ifdef SB_FLOATS
// x = n ln 2 + r with a whole n and |r| <= ln 2 / 2: gives expm1(r) by Cephes' polynomial of expf, and n. |x| below
// 2^21.
SB_FUNCTION SB_FLOATS sb_exp_rest(const SB_FLOATS x, SB_INTS* n) {
  const SB_FLOATS turn = SB_ALL(12582912.0f);  // 1.5 * 2^23: a whole number added to it is in the low bits
  const SB_FLOATS shifted = FMA(x, SB_ALL(1.44269504088896340736f), turn), whole = shifted - turn;
  const SB_FLOATS r = FMA(whole, SB_ALL(-1.428606765330187045e-6f), FMA(whole, SB_ALL(-0.693145751953125f), x));
  SB_FLOATS e = FMA(SB_ALL(1.98527617612853646278e-4f), r, SB_ALL(1.39304355252534151077e-3f));
  e = FMA(e, r, SB_ALL(8.33336077630519866943e-3f));
  e = FMA(e, r, SB_ALL(4.16664853692054748535e-2f));
  e = FMA(e, r, SB_ALL(1.66666671633720397949e-1f));
  e = FMA(e, r, SB_ALL(0.5f));
  *n = SB_WORD_OF(shifted) - 0x4b400000;
  return FMA(r * r, e, r);
}

// Within 1.0 units. 2^n is two factors, so that denormal results are rounded once and large ones overflow as they
// should.
SB_FUNCTION SB_FLOATS sb_exp(const SB_FLOATS x) {
  const SB_FLOATS low = SB_PICK(x > SB_ALL(89.0f), SB_ALL(89.0f), x);  // NaN stays
  SB_INTS n;
  const SB_FLOATS e = sb_exp_rest(SB_PICK(low < SB_ALL(-105.0f), SB_ALL(-105.0f), low), &n) + SB_ALL(1.0f);
  const SB_INTS part = n >> 1;
  return e * SB_FLOAT_OF((part + 127) << 23) * SB_FLOAT_OF((n - part + 127) << 23);
}

// Within 1.5 units: 2^n expm1(r) + (2^n - 1), halved until the end because 2^128 is infinite.
SB_FUNCTION SB_FLOATS sb_expm1(const SB_FLOATS x) {
  const SB_FLOATS low = SB_PICK(x > SB_ALL(89.0f), SB_ALL(89.0f), x);  // NaN stays
  SB_INTS n;
  const SB_FLOATS e = sb_exp_rest(SB_PICK(low < SB_ALL(-25.0f), SB_ALL(-25.0f), low), &n);
  const SB_FLOATS part = SB_FLOAT_OF((n + 126) << 23);
  const SB_FLOATS y = SB_ALL(2.0f) * FMA(e, part, part - SB_ALL(0.5f));
  return SB_PICK(SB_MAGNITUDE(x) < SB_ALL(5.9e-8f), x, y);
}

// x = m 2^n with m from 1/sqrt 2 to sqrt 2: gives r = m - 1, n, and log(m) - r by Cephes' polynomial of logf.
SB_FUNCTION SB_FLOATS sb_log_rest(const SB_FLOATS x, SB_FLOATS* n, SB_FLOATS* r) {
  const SB_FLOATS y = SB_PICK(x < SB_ALL(1.17549435e-38f), x * SB_ALL(8388608.0f), x);  // denormals times 2^23
  const SB_INTS bits = SB_WORD_OF(SB_MAGNITUDE(y)), power = (bits - 0x3f3504f3) >> 23;
  const SB_FLOATS lost = SB_PICK(x < SB_ALL(1.17549435e-38f), SB_ALL(23.0f), SB_ALL(0.0f));
  const SB_FLOATS m = SB_FLOAT_OF(bits - (power << 23)) - SB_ALL(1.0f), z = m * m;
  SB_FLOATS p = FMA(SB_ALL(7.0376836292e-2f), m, SB_ALL(-1.1514610310e-1f));
  p = FMA(p, m, SB_ALL(1.1676998740e-1f));
  p = FMA(p, m, SB_ALL(-1.2420140846e-1f));
  p = FMA(p, m, SB_ALL(1.4249322787e-1f));
  p = FMA(p, m, SB_ALL(-1.6668057665e-1f));
  p = FMA(p, m, SB_ALL(2.0000714765e-1f));
  p = FMA(p, m, SB_ALL(-2.4999993993e-1f));
  p = FMA(p, m, SB_ALL(3.3333331174e-1f));
  *n = SB_NUMBER(power) - lost;
  *r = m;
  return m * z * p;
}
// `inside`, a logarithm of x where x is above 0 and finite, or what any logarithm of such an x is.
SB_FUNCTION SB_FLOATS sb_log_or(const SB_FLOATS x, const SB_FLOATS inside) {
  const SB_FLOATS negative =
      SB_PICK(x < SB_ALL(0.0f), SB_FLOAT_OF((SB_INTS)(0x7fc00000)), x + x);  // infinity and NaN stay
  const SB_FLOATS outside = SB_PICK(x == SB_ALL(0.0f), SB_ALL(-SB_INFINITY), negative);
  return SB_PICK((x > SB_ALL(0.0f)) & (x < SB_ALL(SB_INFINITY)), inside, outside);
}

// Within 0.8 units.
SB_FUNCTION SB_FLOATS sb_log(const SB_FLOATS x) {
  SB_FLOATS n, r;
  const SB_FLOATS cube = sb_log_rest(x, &n, &r);
  const SB_FLOATS t = FMA(SB_ALL(-0.5f), r * r, FMA(n, SB_ALL(-2.12194440e-4f), cube));
  return sb_log_or(x, FMA(n, SB_ALL(0.693359375f), r + t));
}

// Within 2 units; exact for powers of two (Cephes' log2f).
SB_FUNCTION SB_FLOATS sb_log2(const SB_FLOATS x) {
  SB_FLOATS n, r;
  const SB_FLOATS cube = sb_log_rest(x, &n, &r), t = FMA(SB_ALL(-0.5f), r * r, cube);
  const SB_FLOATS more = SB_ALL(0.44269504088896340736f);  // log2 e = 1 + more
  return sb_log_or(x, (FMA(t, more, r * more) + t + r) + n);
}

// Within 2 units (Cephes' log10f).
SB_FUNCTION SB_FLOATS sb_log10(const SB_FLOATS x) {
  SB_FLOATS n, r;
  const SB_FLOATS cube = sb_log_rest(x, &n, &r), t = FMA(SB_ALL(-0.5f), r * r, cube);
  SB_FLOATS y = FMA(t, SB_ALL(4.3359375e-1f), (r + t) * SB_ALL(7.00731903251827651129e-4f));
  y = FMA(n, SB_ALL(2.48745663981195213739e-4f), FMA(r, SB_ALL(4.3359375e-1f), y));
  return sb_log_or(x, FMA(n, SB_ALL(3.0078125e-1f), y));
}

// Within 1.5 units: log(u) of the rounded u = 1 + x, and what the rounding lost over u.
SB_FUNCTION SB_FLOATS sb_log1p(const SB_FLOATS x) {
  const SB_FLOATS u = x + SB_ALL(1.0f), rough = sb_log(u);
  const SB_FLOATS lost = SB_PICK(x > SB_ALL(1.0f), SB_ALL(1.0f) - (u - x), x - (u - SB_ALL(1.0f)));
  const SB_FLOATS y = SB_PICK((u > SB_ALL(0.0f)) & (u < SB_ALL(SB_INFINITY)), rough + lost / u, rough);
  return SB_PICK(SB_MAGNITUDE(x) < SB_ALL(2.9e-8f), x, y);
}

// Within two units: a polynomial below 0.625 (Cephes' tanhf), else 1 - 2 / (exp(2 |x|) + 1), which is 1 from 10 on.
SB_FUNCTION SB_FLOATS sb_tanh(const SB_FLOATS x) {
  const SB_FLOATS a = SB_MAGNITUDE(x), z = x * x;
  SB_FLOATS p = FMA(SB_ALL(-5.70498872745e-3f), z, SB_ALL(2.06390887954e-2f));
  p = FMA(p, z, SB_ALL(-5.37397155531e-2f));
  p = FMA(p, z, SB_ALL(1.33314422036e-1f));
  p = FMA(p, z, SB_ALL(-3.33332819422e-1f));
  const SB_FLOATS small = FMA(p * z, a, a);
  SB_INTS n;
  SB_FLOATS e = sb_exp_rest(SB_PICK(a > SB_ALL(10.0f), SB_ALL(20.0f), a + a), &n) + SB_ALL(1.0f);  // NaN stays
  e *= SB_FLOAT_OF((n + 127) << 23);
  const SB_FLOATS large = SB_ALL(1.0f) - SB_ALL(2.0f) / (e + SB_ALL(1.0f));
  const SB_FLOATS y = SB_PICK(a < SB_ALL(0.625f), small, large);
  return SB_FLOAT_OF(SB_WORD_OF(y) | (SB_WORD_OF(x) & ~0x7fffffff));
}

// Within seven units, 3.8e-7: a rational function of odd degree 13 over even degree 8, 1 from 4 on.
SB_FUNCTION SB_FLOATS sb_erf(const SB_FLOATS x) {
  const SB_FLOATS low = SB_PICK(x > SB_ALL(4.0f), SB_ALL(4.0f), x);  // NaN stays
  const SB_FLOATS t = SB_PICK(low < SB_ALL(-4.0f), SB_ALL(-4.0f), low), s = t * t;
  SB_FLOATS p = FMA(SB_ALL(-2.72614225801306e-10f), s, SB_ALL(2.77068142495902e-08f));
  p = FMA(p, s, SB_ALL(-2.10102402082508e-06f));
  p = FMA(p, s, SB_ALL(-5.69250639462346e-05f));
  p = FMA(p, s, SB_ALL(-7.34990630326855e-04f));
  p = FMA(p, s, SB_ALL(-2.95459980854025e-03f));
  p = FMA(p, s, SB_ALL(-1.60960333262415e-02f));
  SB_FLOATS q = FMA(SB_ALL(-1.45660718464996e-05f), s, SB_ALL(-2.13374055278905e-04f));
  q = FMA(q, s, SB_ALL(-1.68282697438203e-03f));
  q = FMA(q, s, SB_ALL(-7.37332916720468e-03f));
  q = FMA(q, s, SB_ALL(-1.42647390514189e-02f));
  return t * p / q;
}

// The derivative of x * Phi(x) within 2.0e-7: 1/2 and an odd rational function, in part the time of an erf and an exp.
SB_FUNCTION SB_FLOATS sb_gelu_slope(const SB_FLOATS x) {
  const SB_FLOATS low = SB_PICK(x > SB_ALL(6.0f), SB_ALL(6.0f), x);  // NaN stays
  const SB_FLOATS t = SB_PICK(low < SB_ALL(-6.0f), SB_ALL(-6.0f), low), s = t * t;
  SB_FLOATS p = FMA(SB_ALL(-2.8874097557363143e-11f), s, SB_ALL(1.2999342047237405e-08f));
  p = FMA(p, s, SB_ALL(1.1215751101190108e-06f));
  p = FMA(p, s, SB_ALL(3.202826701453887e-05f));
  p = FMA(p, s, SB_ALL(0.0002850995515473187f));
  p = FMA(p, s, SB_ALL(0.013569316826760769f));
  p = FMA(p, s, SB_ALL(-0.018044503405690193f));
  p = FMA(p, s, SB_ALL(0.7978845238685608f));
  SB_FLOATS q = FMA(SB_ALL(3.6351656262922916e-07f), s, SB_ALL(1.0811122592713218e-05f));
  q = FMA(q, s, SB_ALL(0.00025857568834908307f));
  q = FMA(q, s, SB_ALL(0.004149903543293476f));
  q = FMA(q, s, SB_ALL(0.045580487698316574f));
  q = FMA(q, s, SB_ALL(0.3107174336910248f));
  q = FMA(q, s, SB_ALL(1.0f));
  return FMA(t, p / q, SB_ALL(0.5f));
}

// Within 1.0 units: 2^r by Cephes' polynomial of exp2f for |r| <= 1/2, times 2^n in two factors as in sb_exp.
SB_FUNCTION SB_FLOATS sb_exp2(const SB_FLOATS x) {
  const SB_FLOATS low = SB_PICK(x > SB_ALL(129.0f), SB_ALL(129.0f), x);  // NaN stays
  const SB_FLOATS t = SB_PICK(low < SB_ALL(-151.0f), SB_ALL(-151.0f), low), turn = SB_ALL(12582912.0f);
  const SB_FLOATS shifted = t + turn, r = t - (shifted - turn);
  SB_FLOATS e = FMA(SB_ALL(1.535336188319500e-4f), r, SB_ALL(1.339887440266574e-3f));
  e = FMA(e, r, SB_ALL(9.618437357674640e-3f));
  e = FMA(e, r, SB_ALL(5.550332471162809e-2f));
  e = FMA(e, r, SB_ALL(2.402264791363012e-1f));
  e = FMA(e, r, SB_ALL(6.931472028550421e-1f));
  e = FMA(e, r, SB_ALL(1.0f));
  const SB_INTS n = SB_WORD_OF(shifted) - 0x4b400000, part = n >> 1;
  return e * SB_FLOAT_OF((part + 127) << 23) * SB_FLOAT_OF((n - part + 127) << 23);
}

// Half of exp |x|, which is finite where sinh and cosh are.
SB_FUNCTION SB_FLOATS sb_half_exp(const SB_FLOATS x) {
  SB_INTS n;
  const SB_FLOATS a = SB_MAGNITUDE(x), e = sb_exp_rest(SB_PICK(a > SB_ALL(90.0f), SB_ALL(90.0f), a), &n) + SB_ALL(1.0f);
  const SB_INTS part = n >> 1;
  return e * SB_FLOAT_OF((part + 127) << 23) * SB_FLOAT_OF((n - 1 - part + 127) << 23);
}
// Within 2 units.
SB_FUNCTION SB_FLOATS sb_cosh(const SB_FLOATS x) {
  const SB_FLOATS halved = sb_half_exp(x);
  return halved + SB_ALL(0.25f) / halved;
}
// Within 2 units: below 1 Cephes' polynomial of sinhf.
SB_FUNCTION SB_FLOATS sb_sinh(const SB_FLOATS x) {
  const SB_FLOATS halved = sb_half_exp(x), large = halved - SB_ALL(0.25f) / halved, z = x * x;
  SB_FLOATS p = FMA(SB_ALL(2.03721912945e-4f), z, SB_ALL(8.33028376239e-3f));
  p = FMA(p, z, SB_ALL(1.66667160211e-1f));
  const SB_FLOATS y = SB_PICK(SB_MAGNITUDE(x) <= SB_ALL(1.0f), SB_MAGNITUDE(FMA(p * z, x, x)), large);
  return SB_FLOAT_OF(SB_WORD_OF(y) | (SB_WORD_OF(x) & ~0x7fffffff));
}

// Within 2 units: below 1/2 Cephes' polynomial of atanhf.
SB_FUNCTION SB_FLOATS sb_atanh(const SB_FLOATS x) {
  const SB_FLOATS z = x * x;
  SB_FLOATS p = FMA(SB_ALL(1.81740078349e-1f), z, SB_ALL(8.24370301058e-2f));
  p = FMA(p, z, SB_ALL(1.46691431730e-1f));
  p = FMA(p, z, SB_ALL(1.99782164500e-1f));
  p = FMA(p, z, SB_ALL(3.33337300303e-1f));
  const SB_FLOATS small = FMA(p * z, x, x);
  const SB_FLOATS large = SB_ALL(0.5f) * sb_log((SB_ALL(1.0f) + x) / (SB_ALL(1.0f) - x));
  return SB_PICK(SB_MAGNITUDE(x) < SB_ALL(0.5f), small, large);
}

// asin of a from 0 to 1/2 (Cephes' asinf).
SB_FUNCTION SB_FLOATS sb_asin_rest(const SB_FLOATS a, const SB_FLOATS square) {
  SB_FLOATS p = FMA(SB_ALL(4.2163199048e-2f), square, SB_ALL(2.4181311049e-2f));
  p = FMA(p, square, SB_ALL(4.5470025998e-2f));
  p = FMA(p, square, SB_ALL(7.4953002686e-2f));
  p = FMA(p, square, SB_ALL(1.6666752422e-1f));
  return FMA(p * square, a, a);
}
// Both within 2 units: beyond 1/2 by asin(sqrt((1 - |x|) / 2)), NaN beyond 1.
SB_FUNCTION SB_FLOATS sb_asin(const SB_FLOATS x) {
  const SB_FLOATS a = SB_MAGNITUDE(x), rest = SB_ALL(0.5f) * (SB_ALL(1.0f) - a), root = SB_ROOT(rest);
  const SB_FLOATS large = SB_ALL(1.57079632679489661923f) - SB_ALL(2.0f) * sb_asin_rest(root, rest);
  const SB_FLOATS y = SB_PICK(a <= SB_ALL(0.5f), sb_asin_rest(a, a * a), large);
  return SB_FLOAT_OF(SB_WORD_OF(y) | (SB_WORD_OF(x) & ~0x7fffffff));
}
SB_FUNCTION SB_FLOATS sb_acos(const SB_FLOATS x) {
  const SB_FLOATS a = SB_MAGNITUDE(x), rest = SB_ALL(0.5f) * (SB_ALL(1.0f) - a), root = SB_ROOT(rest);
  const SB_FLOATS twice = SB_ALL(2.0f) * sb_asin_rest(root, rest);
  const SB_FLOATS large = SB_PICK(x < SB_ALL(0.0f), SB_ALL(3.14159265358979323846f) - twice, twice);
  const SB_FLOATS small = SB_ALL(1.57079632679489661923f) - sb_asin_rest(x, x * x);
  return SB_PICK(a <= SB_ALL(0.5f), small, large);
}

// atan of a from 0 to infinity, within 2 units (Cephes' atanf).
SB_FUNCTION SB_FLOATS sb_atan_of_positive(const SB_FLOATS a) {
  const SB_FLOATS by = SB_PICK(a > SB_ALL(2.41421356237309505f), SB_ALL(-1.0f), a - SB_ALL(1.0f));
  const SB_FLOATS over = SB_PICK(a > SB_ALL(2.41421356237309505f), a, a + SB_ALL(1.0f)), turned = by / over;
  const SB_FLOATS r = SB_PICK(a > SB_ALL(0.41421356237309505f), turned, a), z = r * r;
  const SB_FLOATS eighths =
      SB_PICK(a > SB_ALL(2.41421356237309505f), SB_ALL(1.57079632679489661923f), SB_ALL(0.78539816339744830962f));
  const SB_FLOATS base = SB_PICK(a > SB_ALL(0.41421356237309505f), eighths, SB_ALL(0.0f));
  SB_FLOATS p = FMA(SB_ALL(8.05374449538e-2f), z, SB_ALL(-1.38776856032e-1f));
  p = FMA(p, z, SB_ALL(1.99777106478e-1f));
  p = FMA(p, z, SB_ALL(-3.33329491539e-1f));
  return base + FMA(p * z, r, r);
}
SB_FUNCTION SB_FLOATS sb_atan(const SB_FLOATS x) {
  const SB_FLOATS y = sb_atan_of_positive(SB_MAGNITUDE(x));
  return SB_FLOAT_OF(SB_WORD_OF(y) | (SB_WORD_OF(x) & ~0x7fffffff));
}
// Within 3 units: the angle of the smaller over the larger, turned into its octant. Two zeros are 0 over 1, two
// infinities 1 over 1.
SB_FUNCTION SB_FLOATS sb_atan2(const SB_FLOATS y, const SB_FLOATS x) {
  const SB_FLOATS a = SB_MAGNITUDE(y), b = SB_MAGNITUDE(x);
  const SB_FLOATS less = SB_PICK(a > b, b, a), more = SB_PICK(a > b, a, b);
  const SB_FLOATS ratio = SB_PICK(less == more, SB_PICK(more == SB_ALL(0.0f), SB_ALL(0.0f), SB_ALL(1.0f)), less / more);
  const SB_FLOATS angle = sb_atan_of_positive(ratio);
  const SB_FLOATS first = SB_PICK(a > b, SB_ALL(1.57079632679489661923f) - angle, angle);
  const SB_FLOATS upper = SB_PICK(SB_WORD_OF(x) < 0, SB_ALL(3.14159265358979323846f) - first, first);
  const SB_FLOATS turned = SB_FLOAT_OF(SB_WORD_OF(upper) | (SB_WORD_OF(y) & ~0x7fffffff));
  return SB_PICK((x == x) & (y == y), turned, x + y);
}

// ---- sin, cos and tan, within two units in the last place of the larger of sin and cos
// x less a multiple of pi / 2, of which `quarter` is the count, or its last two bits: |x| up to SB_NEAR, in three steps
// of which the first ones are exact.
#define SB_NEAR 200.0f
SB_FUNCTION SB_FLOATS sb_near_rest(const SB_FLOATS x, SB_INTS* quarter) {
  const SB_FLOATS turn = SB_ALL(12582912.0f);  // 1.5 * 2^23: a whole number added to it is in the low bits
  const SB_FLOATS shifted = FMA(x, SB_ALL(0.63661977236758134308f), turn), n = shifted - turn;
  const SB_FLOATS r = FMA(n, SB_ALL(-4.837512969970703125e-4f), FMA(n, SB_ALL(-1.5703125f), x));
  *quarter = SB_WORD_OF(shifted);
  return FMA(n, SB_ALL(-7.54978995489188216e-8f), r);
}

// The same of one number beyond SB_NEAR: x = m 2^s with a whole m, so of 2 / pi only those 64 bits count that times 2^s
// lie between 2 and 2^-62; those above add multiples of four quarters (M. Payne and R. Hanek, "Radian reduction for
// trigonometric functions", 1983).
SB_FUNCTION float sb_far_rest(const float x, int* quarter) {
  const SB_ULONG digits[] = {0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                             0xf534ddc0u, 0xdb629599u, 0x3c439041u};  // of 2 / pi, behind a word of zeros
  const int word = as_int(x), power = (word >> 23) & 255;
  const float none = x - x;  // NaN for what is not finite
  const int first = power - 120, k = first >> 5, left = first & 31;
  const SB_ULONG bits = ((digits[k] << 32 | digits[k + 1]) << left) | ((digits[k + 2] << left) >> 32);
  const SB_ULONG product = bits * (SB_ULONG)((word & 0x7fffff) | 0x800000);
  const SB_ULONG count = (product + ((SB_ULONG)1 << 61)) >> 62;
  const float rest = (float)(SB_LONG)(product - (count << 62)) * 3.406121580086555e-19f + none;  // pi / 2 * 2^-62
  *quarter = word < 0 ? -(int)count : (int)count;
  return word < 0 ? -rest : rest;
}

// sin and cos of |r| up to pi / 4, of which z is the square (Cephes' sinf and cosf).
SB_FUNCTION SB_FLOATS sb_sine_of(const SB_FLOATS r, const SB_FLOATS z) {
  const SB_FLOATS s = FMA(SB_ALL(-1.9515295891e-4f), z, SB_ALL(8.3321608736e-3f));
  return FMA(FMA(s, z, SB_ALL(-1.6666654611e-1f)) * z, r, r);
}
SB_FUNCTION SB_FLOATS sb_cosine_of(const SB_FLOATS z) {
  const SB_FLOATS c = FMA(SB_ALL(2.443315711809948e-5f), z, SB_ALL(-1.388731625493765e-3f));
  return FMA(FMA(c, z, SB_ALL(4.166664568298827e-2f)) * z, z, FMA(SB_ALL(-0.5f), z, SB_ALL(1.0f)));
}

// sin of r and `quarter` quarters.
SB_FUNCTION SB_FLOATS sb_turned(const SB_FLOATS r, const SB_INTS quarter) {
  const SB_FLOATS s = sb_sine_of(r, r * r), c = sb_cosine_of(r * r);
  const SB_FLOATS y = SB_PICK((quarter & 1) != 0, c, s);
  return SB_FLOAT_OF(SB_WORD_OF(y) ^ ((quarter & 2) << 30));
}

// tan of r and `quarter` quarters.
SB_FUNCTION SB_FLOATS sb_turned_tangent(const SB_FLOATS r, const SB_INTS quarter) {
  const SB_FLOATS s = sb_sine_of(r, r * r), c = sb_cosine_of(r * r);
  return SB_PICK((quarter & 1) != 0, -c, s) / SB_PICK((quarter & 1) != 0, s, c);
}

#if !defined(__cplusplus) || defined(SAMEBYTES_KERNEL_TEXT)
// The logarithm of one number, with the bits that sb_log gives it.
static inline real sb_log_of(const real x) {
  real lanes[VW];
  VSTORE(sb_log((vreal)(x)), lanes);
  return lanes[0];
}
#endif

#undef SB_FLOATS
#undef SB_INTS
#undef SB_ALL
#undef SB_PICK
#undef SB_WORD_OF
#undef SB_FLOAT_OF
#undef SB_NUMBER
#undef SB_MAGNITUDE
#undef SB_INFINITY
#undef SB_ROOT
#undef SB_LONG
#undef SB_ULONG
#undef SB_FUNCTION
#endif
#if defined(__cplusplus) && !defined(SAMEBYTES_KERNEL_TEXT)
#undef FMA
#undef as_int
}  // namespace samebytes::detail
#endif
