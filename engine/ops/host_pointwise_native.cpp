// Pointwise kernels on the host; ops/host.h says what they promise. Over 400 lines because the loads, the instructions
// and the stores of one element type belong together.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "ops/native.h"
#include "samebytes/shape.h"
#include "shared/functions.h"

#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // of the compiler's own headers
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace samebytes::detail {
namespace {

using Code = HostInstruction::Code;

inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float root(float a) { return __builtin_sqrtf(a); }
inline double root(double a) { return __builtin_sqrt(a); }
// The functions of f32; no program of doubles has them.
inline float single(float a) { return a; }
inline float single(double a) { return static_cast<float>(a); }

// Whether sb_near_rest does for all n numbers; without a branch in the loop.
template <class R>
bool are_near(const R* a, std::int64_t n) {
  int far = 0;
  for (std::int64_t l = 0; l < n; ++l) far |= !(std::fabs(a[l]) <= static_cast<R>(SB_NEAR));
  return far == 0;
}
// A number less whole quarters of a turn, and then a function of what is left.
struct Turns {
  float rest;
  std::int32_t quarter;
};
inline Turns near_turns(float x) {
  std::int32_t quarter;
  const float rest = sb_near_rest(x, &quarter);
  return {rest, quarter};
}
inline Turns any_turns(float x) {
  if (!(std::fabs(x) > SB_NEAR)) return near_turns(x);
  std::int32_t quarter;
  const float rest = sb_far_rest(x, &quarter);
  return {rest, quarter};
}
inline float sine_of(Turns at) { return sb_turned(at.rest, at.quarter); }
inline float cosine_of(Turns at) { return sb_turned(at.rest, at.quarter + 1); }
inline float tangent_of(Turns at) { return sb_turned_tangent(at.rest, at.quarter); }

// fmod where the quotient has less than 22 bits: sb_fmod of cl/common/pointwise.clh. A remainder is exact, so every way
// to it gives the same bits.
template <class R>
bool have_near_quotients(const R* a, const R* b, std::int64_t n) {
  int far = 0;
  for (std::int64_t l = 0; l < n; ++l) {
    const R by = std::fabs(b[l]);
    far |= static_cast<int>(!(std::fabs(a[l]) < by * static_cast<R>(4194304)));
    far |= static_cast<int>(!(by <= static_cast<R>(1e38))) | static_cast<int>(!(by >= static_cast<R>(1e-30)));
  }
  return far == 0;
}
template <class R>
R near_fmod(R a, R b) {
  const R x = std::fabs(a), y = std::fabs(b), rest = fused(-std::trunc(x / y), y, x);
  return std::copysign(rest < 0 ? rest + y : rest, a);
}

template <class R>
R any_fmod(R a, R b) {
  const R rest = std::fmod(a, b);
  return rest == rest ? rest : std::numeric_limits<R>::quiet_NaN();  // of one sign, as a kernel's
}

// Whole numbers wrap around, as they do in kernels.
inline std::uint32_t word(std::int32_t a) { return static_cast<std::uint32_t>(a); }
inline std::int32_t bits(std::uint32_t a) { return static_cast<std::int32_t>(a); }

// ---- values of 16 bits, rounded to nearest even; NaN stays NaN, with the bits that fit

inline std::uint16_t f16_bits(float v) {
  const auto all = std::bit_cast<std::uint32_t>(v), size = all & 0x7fffffffu;
  const std::uint32_t normal = (size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13;
  // The last bit of a half is that of 2^-24, as that of a denormal one.
  const std::uint32_t denormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000u;
  const std::uint32_t number = size < 0x38800000u ? denormal : size < 0x47800000u ? normal : 0x7c00u;
  const std::uint32_t nan = 0x7e00u | ((size >> 13) & 0x3ffu);
  return static_cast<std::uint16_t>((size > 0x7f800000u ? nan : number) | ((all >> 16) & 0x8000u));
}
inline float f16_value(std::uint16_t bits) {
  const std::uint32_t size = bits & 0x7fffu;
  const auto denormal = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(size)) * 0x1p-24f);
  const std::uint32_t infinite = (size << 13) + 0x70000000u, nan = infinite | 0x400000u;
  const std::uint32_t number = size < 0x400u ? denormal : size < 0x7c00u ? (size << 13) + 0x38000000u : infinite;
  return std::bit_cast<float>((size > 0x7c00u ? nan : number) | (bits & 0x8000u) << 16);
}
inline std::uint16_t bf16_bits(float v) {
  const auto all = std::bit_cast<std::uint32_t>(v);
  const std::uint32_t rounded = (all + 0x7fffu + ((all >> 16) & 1u)) >> 16;
  return static_cast<std::uint16_t>((all & 0x7fffffffu) > 0x7f800000u ? (all >> 16) | 64u : rounded);
}
inline float bf16_value(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// Values of 16 bits as load() and store() meet them.
struct Half {
  std::uint16_t bits;
  Half() = default;
  explicit Half(float v) : bits(f16_bits(v)) {}
  operator float() const { return f16_value(bits); }
};
struct BrainFloat {
  std::uint16_t bits;
  BrainFloat() = default;
  explicit BrainFloat(float v) : bits(bf16_bits(v)) {}
  operator float() const { return bf16_value(bits); }
};

// The same of n neighbours; a vector unit gives the same bits.
inline void f16_from(const float* from, Half* to, std::int64_t n) {
  std::int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm512_cvtps_ph(_mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#endif
  for (; i < n; ++i) to[i] = Half(from[i]);
}
inline void f16_to(const Half* from, float* to, std::int64_t n) {
  std::int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i))));
#endif
  for (; i < n; ++i) to[i] = from[i];
}
template <class R>
void round_to_f16(const R* from, R* to, std::int64_t n) {
  if constexpr (std::is_same_v<R, float>) {
    constexpr std::int64_t kTogether = 64;
    Half halves[kTogether];
    for (std::int64_t i = 0; i < n; i += kTogether) {
      const std::int64_t count = std::min(kTogether, n - i);
      f16_from(from + i, halves, count);
      f16_to(halves, to + i, count);
    }
  }
}

// ---- pointwise

// Where the lanes of each register lie: in memory of the thread, or in an array that is read or written as it lies.
template <class R>
struct Registers {
  std::array<R*, HostPointwise::kMostRegisters> real;
  std::int32_t* whole(int at) { return reinterpret_cast<std::int32_t*>(real[at]); }
};

template <class To, class From>
void load(To* to, const From* from, std::int64_t stride, std::int64_t n) {
  if (stride == 0) {
    const To value = static_cast<To>(*from);
    for (std::int64_t i = 0; i < n; ++i) to[i] = value;
  } else if (stride == 1 && std::is_same_v<From, Half>) {
    if constexpr (std::is_same_v<From, Half> && std::is_same_v<To, float>) f16_to(from, to, n);
  } else if (stride == 1) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i]);
  } else if (stride == -1) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[-i]);
  } else if (stride == 2) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[2 * i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i * stride]);
  }
}

template <class To, class From>
void store(To* to, const From* from, std::int64_t n) {
  if constexpr (std::is_same_v<To, Half> && std::is_same_v<From, float>) return f16_from(from, to, n);
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i]);
}

// Outside the range of an int a vector unit gives the smallest one, which C++ leaves open.
template <class R>
std::int32_t to_int(R v) {
  constexpr R limit = static_cast<R>(2147483648.0);
  return v >= -limit && v < limit ? static_cast<std::int32_t>(v) : std::numeric_limits<std::int32_t>::min();
}

// A result lies over an operand or away from it, never shifted.
#if defined(__clang__)
#define SAMEBYTES_APART  // tells by itself, at run time
#else
#define SAMEBYTES_APART _Pragma("GCC ivdep")
#endif
#define SAMEBYTES_EACH(target, expression)                                   \
  {                                                                          \
    auto* const to = target;                                                 \
    SAMEBYTES_APART for (std::int64_t l = 0; l < n; ++l) to[l] = expression; \
    break;                                                                   \
  }

template <class R>
void execute(const std::vector<HostInstruction>& code, Registers<R>& file, std::int64_t n) {
  for (const HostInstruction& at : code) {
    const R *const a = file.real[at.a], *const b = file.real[at.b], *const c = file.real[at.c],
                   *const d = file.real[at.d];
    const std::int32_t *const ia = file.whole(at.a), *const ib = file.whole(at.b), *const ic = file.whole(at.c);
    const R limit = b[0], high = c[0];
    R* const r = file.real[at.to];
    std::int32_t* const i = file.whole(at.to);
    switch (at.code) {
      case Code::add: SAMEBYTES_EACH(r, a[l] + b[l])
      case Code::subtract: SAMEBYTES_EACH(r, a[l] - b[l])
      case Code::multiply: SAMEBYTES_EACH(r, a[l] * b[l])
      case Code::divide: SAMEBYTES_EACH(r, a[l] / b[l])
      case Code::negate: SAMEBYTES_EACH(r, -a[l])
      case Code::root: SAMEBYTES_EACH(r, root(a[l]))
      case Code::floor: SAMEBYTES_EACH(r, std::floor(a[l]))
      case Code::ceil: SAMEBYTES_EACH(r, std::ceil(a[l]))
      case Code::trunc: SAMEBYTES_EACH(r, std::trunc(a[l]))
      case Code::round: SAMEBYTES_EACH(r, std::nearbyint(a[l]))
      case Code::multiply_add: SAMEBYTES_EACH(r, fused(a[l], b[l], c[l]))
      case Code::magnitude: SAMEBYTES_EACH(r, std::fabs(a[l]))
      case Code::fmod:
        if (have_near_quotients(a, b, n)) SAMEBYTES_EACH(r, near_fmod(a[l], b[l]))
        SAMEBYTES_EACH(r, any_fmod(a[l], b[l]))
      case Code::exp: SAMEBYTES_EACH(r, sb_exp(single(a[l])))
      case Code::expm1: SAMEBYTES_EACH(r, sb_expm1(single(a[l])))
      case Code::log: SAMEBYTES_EACH(r, sb_log(single(a[l])))
      case Code::log1p: SAMEBYTES_EACH(r, sb_log1p(single(a[l])))
      case Code::tanh: SAMEBYTES_EACH(r, sb_tanh(single(a[l])))
      case Code::erf: SAMEBYTES_EACH(r, sb_erf(single(a[l])))
      case Code::gelu_slope: SAMEBYTES_EACH(r, sb_gelu_slope(single(a[l])))
      case Code::exp2: SAMEBYTES_EACH(r, sb_exp2(single(a[l])))
      case Code::log2: SAMEBYTES_EACH(r, sb_log2(single(a[l])))
      case Code::log10: SAMEBYTES_EACH(r, sb_log10(single(a[l])))
      case Code::sinh: SAMEBYTES_EACH(r, sb_sinh(single(a[l])))
      case Code::cosh: SAMEBYTES_EACH(r, sb_cosh(single(a[l])))
      case Code::atanh: SAMEBYTES_EACH(r, sb_atanh(single(a[l])))
      case Code::asin: SAMEBYTES_EACH(r, sb_asin(single(a[l])))
      case Code::acos: SAMEBYTES_EACH(r, sb_acos(single(a[l])))
      case Code::atan: SAMEBYTES_EACH(r, sb_atan(single(a[l])))
      case Code::atan2: SAMEBYTES_EACH(r, sb_atan2(single(a[l]), single(b[l])))
      case Code::sin:
        if (are_near(a, n)) SAMEBYTES_EACH(r, sine_of(near_turns(single(a[l]))))
        SAMEBYTES_EACH(r, sine_of(any_turns(single(a[l]))))
      case Code::cos:
        if (are_near(a, n)) SAMEBYTES_EACH(r, cosine_of(near_turns(single(a[l]))))
        SAMEBYTES_EACH(r, cosine_of(any_turns(single(a[l]))))
      case Code::tan:
        if (are_near(a, n)) SAMEBYTES_EACH(r, tangent_of(near_turns(single(a[l]))))
        SAMEBYTES_EACH(r, tangent_of(any_turns(single(a[l]))))
      case Code::round_f16: round_to_f16(a, r, n); break;
      case Code::round_bf16: SAMEBYTES_EACH(r, bf16_value(bf16_bits(single(a[l]))))
      case Code::equal: SAMEBYTES_EACH(i, a[l] == b[l])
      case Code::not_equal: SAMEBYTES_EACH(i, a[l] != b[l])
      case Code::less: SAMEBYTES_EACH(i, a[l] < b[l])
      case Code::less_equal: SAMEBYTES_EACH(i, a[l] <= b[l])
      case Code::greater: SAMEBYTES_EACH(i, a[l] > b[l])
      case Code::greater_equal: SAMEBYTES_EACH(i, a[l] >= b[l])
      case Code::add_i: SAMEBYTES_EACH(i, bits(word(ia[l]) + word(ib[l])))
      case Code::subtract_i: SAMEBYTES_EACH(i, bits(word(ia[l]) - word(ib[l])))
      case Code::multiply_i: SAMEBYTES_EACH(i, bits(word(ia[l]) * word(ib[l])))
      case Code::negate_i: SAMEBYTES_EACH(i, bits(0u - word(ia[l])))
      case Code::low_byte: SAMEBYTES_EACH(i, ia[l] & 255)
      case Code::equal_i: SAMEBYTES_EACH(i, ia[l] == ib[l])
      case Code::not_equal_i: SAMEBYTES_EACH(i, ia[l] != ib[l])
      case Code::less_i: SAMEBYTES_EACH(i, ia[l] < ib[l])
      case Code::less_equal_i: SAMEBYTES_EACH(i, ia[l] <= ib[l])
      case Code::greater_i: SAMEBYTES_EACH(i, ia[l] > ib[l])
      case Code::greater_equal_i: SAMEBYTES_EACH(i, ia[l] >= ib[l])
      case Code::select_less:
        if (at.has_limit) SAMEBYTES_EACH(r, a[l] < limit ? c[l] : d[l])
        SAMEBYTES_EACH(r, a[l] < b[l] ? c[l] : d[l])
      case Code::select_less_equal:
        if (at.has_limit) SAMEBYTES_EACH(r, a[l] <= limit ? c[l] : d[l])
        SAMEBYTES_EACH(r, a[l] <= b[l] ? c[l] : d[l])
      case Code::select_greater:
        if (at.has_limit) SAMEBYTES_EACH(r, a[l] > limit ? c[l] : d[l])
        SAMEBYTES_EACH(r, a[l] > b[l] ? c[l] : d[l])
      case Code::select_greater_equal:
        if (at.has_limit) SAMEBYTES_EACH(r, a[l] >= limit ? c[l] : d[l])
        SAMEBYTES_EACH(r, a[l] >= b[l] ? c[l] : d[l])
      case Code::select: SAMEBYTES_EACH(r, ia[l] != 0 ? b[l] : c[l])
      case Code::select_i: SAMEBYTES_EACH(i, ia[l] != 0 ? ib[l] : ic[l])
      case Code::maximum:
        SAMEBYTES_EACH(r, (static_cast<int>(a[l] >= b[l]) | static_cast<int>(a[l] != a[l])) != 0 ? a[l] : b[l])
      case Code::minimum:
        SAMEBYTES_EACH(r, (static_cast<int>(a[l] <= b[l]) | static_cast<int>(a[l] != a[l])) != 0 ? a[l] : b[l])
      case Code::clamp: SAMEBYTES_EACH(r, a[l] < limit ? limit : (a[l] > high ? high : a[l]))
      case Code::sign: SAMEBYTES_EACH(r, static_cast<R>(static_cast<int>(a[l] > 0) - static_cast<int>(a[l] < 0)))
      case Code::to_real: SAMEBYTES_EACH(r, static_cast<R>(ia[l]))
      case Code::to_int: SAMEBYTES_EACH(i, to_int(a[l]))
    }
  }
}
#undef SAMEBYTES_EACH
#undef SAMEBYTES_APART

template <class R>
void fill(Registers<R>& file, const HostPointwise& p, const double* scalars, std::int64_t width) {
  for (const HostPointwise::Constant& constant : p.constants) {
    if (constant.is_real)
      std::fill_n(file.real[constant.to], width, static_cast<R>(constant.value));
    else
      std::fill_n(file.whole(constant.to), width, static_cast<std::int32_t>(constant.value));
  }
  for (const HostPointwise::Parameter& parameter : p.parameters)
    std::fill_n(file.real[parameter.to], width, static_cast<R>(scalars[parameter.scalar]));
}

// Lanes `first` to first + n - 1; `from`: the first one's element.
template <class R>
void read(Registers<R>& file, const HostPointwise::Input& input, const void* from, std::int64_t first, std::int64_t n) {
  const std::int64_t stride = input.strides.back();
  R* const real = file.real[input.to] + first;
  std::int32_t* const whole = file.whole(input.to) + first;
  switch (input.dtype) {
    case Dtype::f64: return load(real, static_cast<const double*>(from), stride, n);
    case Dtype::f16: return load(real, static_cast<const Half*>(from), stride, n);
    case Dtype::bf16: return load(real, static_cast<const BrainFloat*>(from), stride, n);
    case Dtype::i32: return load(whole, static_cast<const std::int32_t*>(from), stride, n);
    case Dtype::u8:
    case Dtype::bool_: return load(whole, static_cast<const std::uint8_t*>(from), stride, n);
    default: load(real, static_cast<const float*>(from), stride, n);
  }
}

template <class R>
void write(Registers<R>& file, const HostPointwise::Output& output, void* to, std::int64_t n) {
  const int from = output.from;
  switch (output.dtype) {
    case Dtype::f64: return store(static_cast<double*>(to), file.real[from], n);
    case Dtype::f16: return store(static_cast<Half*>(to), file.real[from], n);
    case Dtype::bf16: return store(static_cast<BrainFloat*>(to), file.real[from], n);
    case Dtype::i32: return store(static_cast<std::int32_t*>(to), file.whole(from), n);
    case Dtype::u8:
    case Dtype::bool_: return store(static_cast<std::uint8_t*>(to), file.whole(from), n);
    default: store(static_cast<float*>(to), file.real[from], n);
  }
}

// n neighbours to another place, which they do not reach: short lines mostly, so a chunk is one move.
template <class Word>
void copy_line(const Word* from, Word* to, std::int64_t n) {
  constexpr std::int64_t kChunk = 64 / sizeof(Word);
  std::int64_t i = 0;
  for (; i + kChunk <= n; i += kChunk) std::memcpy(to + i, from + i, kChunk * sizeof(Word));
  for (; i + kChunk / 4 <= n; i += kChunk / 4) std::memcpy(to + i, from + i, kChunk / 4 * sizeof(Word));
  for (; i < n; ++i) to[i] = from[i];
}

// Rows of neighbours that lie apart, one behind the other: units of whole rows of a copy (HostPointwise::is_copy).
template <class Word>
void copy_rows(const HostPointwise& p, const Word* from, Word* to, std::int64_t begin, std::int64_t end) {
  const HostPointwise::Input& input = p.inputs[0];
  const std::size_t last = p.sizes.size() - 2;  // the axis that the rows go along
  const std::int64_t inner = p.sizes.back(), count = p.sizes[last], step = input.strides[last];
  to += begin * inner;
  for (std::int64_t row = begin; row < end;) {
    const std::int64_t first = row % count, stop = std::min(count, first + end - row);
    std::int64_t start = first * step, rest = row / count;
    for (std::size_t axis = last; axis-- > 0; rest /= p.sizes[axis])
      start += rest % p.sizes[axis] * input.strides[axis];
    const Word* line = from + start;
    for (std::int64_t k = first; k < stop; ++k, line += step, to += inner) copy_line(line, to, inner);
    row += stop - first;
  }
}

// Row k of `to` gets element k of each of the lines of `from`: a square of kTurnedRows.
template <class Word>
void turn_square(const Word* from, std::int64_t step, Word* to, std::int64_t down) {
  constexpr int kRows = HostPointwise::kTurnedRows;
#if defined(__AVX512F__)
  if constexpr (sizeof(Word) == 4) {
    // Neighbours, pairs, fours and eights change places.
    __m512i r[kRows], s[kRows];
    for (int i = 0; i < kRows; ++i) r[i] = _mm512_loadu_si512(from + i * step);
    for (int i = 0; i < kRows; i += 2) {
      s[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
      s[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < kRows; i += 4)
      for (int k = 0; k < 2; ++k) {
        r[i + 2 * k] = _mm512_unpacklo_epi64(s[i + k], s[i + 2 + k]);
        r[i + 2 * k + 1] = _mm512_unpackhi_epi64(s[i + k], s[i + 2 + k]);
      }
    constexpr int even = 0x88, odd = 0xdd;
    for (int i = 0; i < 4; ++i) {
      const __m512i a = _mm512_shuffle_i32x4(r[i], r[4 + i], even), b = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], even);
      const __m512i c = _mm512_shuffle_i32x4(r[i], r[4 + i], odd), d = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], odd);
      _mm512_storeu_si512(to + i * down, _mm512_shuffle_i32x4(a, b, even));
      _mm512_storeu_si512(to + (4 + i) * down, _mm512_shuffle_i32x4(c, d, even));
      _mm512_storeu_si512(to + (8 + i) * down, _mm512_shuffle_i32x4(a, b, odd));
      _mm512_storeu_si512(to + (12 + i) * down, _mm512_shuffle_i32x4(c, d, odd));
    }
    return;
  }
#endif
  for (int k = 0; k < kRows; ++k)
    for (int i = 0; i < kRows; ++i) to[k * down + i] = from[i * step + k];
}

// Units of a turned copy (HostPointwise::turned_axis): each line of the cache is read once, as a whole.
template <class Word>
void copy_turned(const HostPointwise& p, const Word* src, Word* dst, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kRows = HostPointwise::kTurnedRows;
  const HostPointwise::Input& input = p.inputs[0];
  const auto turned = static_cast<std::size_t>(p.turned_axis());
  const std::int64_t inner = p.sizes.back(), step = input.strides.back();
  const std::int64_t tiles = (p.sizes[turned] + kRows - 1) / kRows;
  const std::int64_t blocks = (inner + HostPointwise::kTurnedInner - 1) / HostPointwise::kTurnedInner;
  std::int64_t down = inner;  // from a row to the next one along the turned axis
  for (std::size_t axis = turned + 1; axis + 1 < p.sizes.size(); ++axis) down *= p.sizes[axis];
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t first = unit % tiles * kRows, block = unit / tiles % blocks;
    const std::int64_t height = std::min(kRows, p.sizes[turned] - first);
    const Word* from = src + first;
    Word* to = dst + first * down;
    std::int64_t rest = unit / tiles / blocks, along = inner;
    for (std::size_t axis = p.sizes.size() - 1; axis-- > 0; along *= p.sizes[axis]) {
      if (axis == turned) continue;
      from += rest % p.sizes[axis] * input.strides[axis];
      to += rest % p.sizes[axis] * along;
      rest /= p.sizes[axis];
    }
    std::int64_t i = block * HostPointwise::kTurnedInner;
    const std::int64_t stop = std::min(inner, i + HostPointwise::kTurnedInner);
    for (; height == kRows && i + kRows <= stop; i += kRows) turn_square(from + i * step, step, to + i, down);
    for (; i < stop; ++i)
      for (std::int64_t k = 0; k < height; ++k) to[k * down + i] = from[i * step + k];
  }
}

// A row's place along the outer axes.
class RowPlace {
 public:
  RowPlace(const HostPointwise& kernel, std::int64_t row) : p_(kernel) {
    for (std::size_t axis = outer_axes(); axis-- > 0; row /= p_.sizes[axis]) at_[axis] = row % p_.sizes[axis];
  }
  void next() {
    for (std::size_t axis = outer_axes(); axis-- > 0 && ++at_[axis] == p_.sizes[axis];) at_[axis] = 0;
  }
  // The address of the row's element `begin`.
  void* in(void* array, const HostPointwise::Input& input, std::int64_t begin) const {
    std::int64_t element = begin * input.strides.back();
    for (std::size_t axis = 0; axis < outer_axes(); ++axis) element += at_[axis] * input.strides[axis];
    return static_cast<char*>(array) + element * static_cast<std::int64_t>(bytes_of(input.dtype));
  }

 private:
  std::size_t outer_axes() const { return p_.sizes.size() - 1; }
  const HostPointwise& p_;
  std::array<std::int64_t, Shape::kMaxRank> at_{};
};

// The address of element `at` of result k.
void* place_of(const HostPointwise& p, void* const* arrays, std::size_t k, std::int64_t at) {
  return static_cast<char*>(arrays[p.inputs.size() + k]) + at * static_cast<std::int64_t>(bytes_of(p.outputs[k].dtype));
}

// Makes n neighbours of the results, the first of which is `at`, from inputs that are in their registers.
template <class R>
void make(Registers<R>& file, const HostPointwise& p, void* const* arrays, std::int64_t at, std::int64_t n) {
  const bool is_in_place = p.is_written_in_place();
  if (is_in_place) file.real[p.outputs[0].from] = static_cast<R*>(place_of(p, arrays, 0, at));
  execute(p.code, file, n);
  for (std::size_t k = 0; k < p.outputs.size() && !is_in_place; ++k)
    write(file, p.outputs[k], place_of(p, arrays, k, at), n);
}

// Units of several short rows each: an input that is not dense is gathered row by row into its register, once if all
// rows have the same.
template <class R>
void run_short_rows(const HostPointwise& p, Registers<R>& file, void* const* arrays, std::int64_t begin,
                    std::int64_t end) {
  const std::int64_t inner = p.sizes.back(), together = p.rows_together(), all = p.rows();
  struct Source {
    const HostPointwise::Input* input;
    void* array;
  };
  std::array<Source, HostPointwise::kMostRegisters> in_place, gathered;
  std::size_t in_place_count = 0, gathered_count = 0;
  for (std::size_t k = 0; k < p.inputs.size(); ++k) {
    const HostPointwise::Input& input = p.inputs[k];
    if (p.is_read_in_place(input))
      in_place[in_place_count++] = {&input, arrays[k]};
    else if (std::any_of(input.strides.begin(), input.strides.end() - 1, [](std::int64_t step) { return step != 0; }))
      gathered[gathered_count++] = {&input, arrays[k]};
    else
      for (std::int64_t r = std::min(together, all - begin * together); r-- > 0;)
        read(file, input, arrays[k], r * inner, inner);
  }
  RowPlace place(p, begin * together);
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t row = unit * together, rows = std::min(together, all - row);
    for (const auto& [input, array] : std::span(in_place).first(in_place_count))
      file.real[input->to] = static_cast<R*>(place.in(array, *input, 0));
    for (std::int64_t r = 0; r < rows; ++r, place.next())
      for (const auto& [input, array] : std::span(gathered).first(gathered_count))
        read(file, *input, place.in(array, *input, 0), r * inner, inner);
    make(file, p, arrays, row * inner, rows * inner);
  }
}

template <class R>
void run_pointwise(const HostPointwise& p, void* const* arrays, const double* scalars, std::int64_t first_unit,
                   std::int64_t end_unit) {
  constexpr std::int64_t kAll = HostPointwise::kMostRegisters * HostPointwise::kLeastLanes;
  static_assert(kAll * sizeof(R) <= kMostScratch);
  const Scratch scratch;
  R* const memory = static_cast<R*>(scratch.data);
  const std::int64_t lanes = p.lanes(), inner = p.sizes.back(), together = p.rows_together();
  Registers<R> file;
  for (int at = 0; at < p.registers; ++at) file.real[at] = memory + at * lanes;
  fill(file, p, scalars, std::min(together * inner, lanes));
  if (together > 1) return run_short_rows(p, file, arrays, first_unit, end_unit);
  const std::int64_t units_of_row = (inner + lanes - 1) / lanes;
  const bool is_copy = p.is_copy();
  const bool is_turned = p.turned_axis() >= 0;
  if (is_turned || (is_copy && p.sizes.size() > 1 && units_of_row == 1 && p.inputs[0].strides.back() == 1)) {
    const auto copy_all = [&](const auto* from, auto* to) {
      return is_turned ? copy_turned(p, from, to, first_unit, end_unit) : copy_rows(p, from, to, first_unit, end_unit);
    };
    if (p.inputs[0].dtype == Dtype::f64)
      copy_all(static_cast<const double*>(arrays[0]), static_cast<double*>(arrays[1]));
    else
      copy_all(static_cast<const std::int32_t*>(arrays[0]), static_cast<std::int32_t*>(arrays[1]));
    return;
  }
  std::array<bool, HostPointwise::kMostRegisters> is_in_place;
  for (std::size_t k = 0; k < p.inputs.size(); ++k) is_in_place[k] = !is_copy && p.is_read_in_place(p.inputs[k]);
  std::int64_t row = first_unit / units_of_row;
  RowPlace place(p, row);
  for (std::int64_t unit = first_unit; unit < end_unit; ++row, place.next()) {
    const std::int64_t first = row * units_of_row, end = std::min(end_unit, first + units_of_row);
    for (; unit < end; ++unit) {
      const std::int64_t begin = (unit - first) * lanes, n = std::min(lanes, inner - begin);
      if (is_copy) file.real[p.outputs[0].from] = static_cast<R*>(place_of(p, arrays, 0, row * inner + begin));
      for (std::size_t k = 0; k < p.inputs.size(); ++k) {
        const HostPointwise::Input& input = p.inputs[k];
        void* const from = place.in(arrays[k], input, begin);
        if (is_in_place[k])
          file.real[input.to] = static_cast<R*>(from);
        else
          read(file, input, from, 0, n);
      }
      if (!is_copy) make(file, p, arrays, row * inner + begin, n);
    }
  }
}

}  // namespace

template <>
void host_pointwise_at<kThisLevel>(const HostPointwise& kernel, void* const* arrays, const double* scalars,
                                   std::int64_t begin, std::int64_t end) {
  if (kernel.is_double)
    run_pointwise<double>(kernel, arrays, scalars, begin, end);
  else
    run_pointwise<float>(kernel, arrays, scalars, begin, end);
}

}  // namespace samebytes::detail
