// Small reductions and products on the host; ops/host.h says what they promise. The order of every sum is that of the
// cpu kernels. Over 400 lines because sums, scans and products share the vectors and the orders of their lanes.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#if defined(__FMA__)
#include <immintrin.h>
#endif

#include "ops/native.h"

namespace samebytes::detail {
namespace {

inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

enum What : int { kSum = 0, kMax = 1, kMin = 2, kSquares = 3, kProduct = 4, kRoot = 5 };

template <int kWhat, class T>
T combine(T a, T b) {
  if constexpr (kWhat == kMax) return b > a || b != b ? b : a;
  if constexpr (kWhat == kMin) return b < a || b != b ? b : a;
  if constexpr (kWhat == kProduct) return a * b;
  return a + b;
}
template <int kWhat, class T>
T first() {
  if constexpr (kWhat == kMax) return -std::numeric_limits<T>::infinity();
  if constexpr (kWhat == kMin) return std::numeric_limits<T>::infinity();
  if constexpr (kWhat == kProduct) return 1;
  return 0;
}

// The lanes of a vector in pairs: halves, quarters, and so on.
template <int kWhat, class T, int W>
T over_lanes(std::array<T, W> v) {
  for (int half = W / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) v[l] = combine<kWhat>(v[l], v[l + half]);
  return v[0];
}

template <int kWhat, class T>
T add(T total, T value) {  // of the accumulators of a row
  if constexpr (kWhat == kSquares) return fused(value, value, total);
  return combine<kWhat>(total, value);
}

template <int kWhat, class T, int W>
T reduce_row(const T* p, std::int64_t n) {
  constexpr std::int64_t block_rows = 64;
  constexpr int kBetween = kWhat == kSquares ? kSum : kWhat;
  std::array<T, W> total;
  total.fill(first<kBetween, T>());
  std::int64_t i = 0;
  while (n - i >= 4 * W) {
    const std::int64_t end = i + std::min((n - i) / (4 * W), block_rows) * (4 * W);
    std::array<std::array<T, W>, 4> parts;
    for (auto& part : parts) part.fill(first<kBetween, T>());
    for (; i < end; i += 4 * W)
      for (int q = 0; q < 4; ++q)
        for (int l = 0; l < W; ++l) parts[q][l] = add<kWhat>(parts[q][l], p[i + q * W + l]);
    for (int l = 0; l < W; ++l)
      total[l] = combine<kBetween>(total[l], combine<kBetween>(combine<kBetween>(parts[0][l], parts[1][l]),
                                                               combine<kBetween>(parts[2][l], parts[3][l])));
  }
  for (; i < n; i += W)
    for (int l = 0; l < W; ++l) total[l] = add<kWhat>(total[l], i + l < n ? p[i + l] : first<kBetween, T>());
  return over_lanes<kBetween, T, W>(total);
}

template <class T, int W>
void reduce_rows(const HostRows& s, const T* src, T* dst) {
  const T divisor = static_cast<T>(s.divisor);
  for (std::int64_t begin = 0; begin < s.rows; begin += s.rows_per_group) {
    const std::int64_t end = std::min(s.rows, begin + s.rows_per_group);
    for (std::int64_t row = begin; row < end; ++row) {
      const T* const p = src + row * s.columns;
      T value;
      if (s.what == kSum && s.columns <= W && end - row >= W && (s.rows - row) * s.columns >= W * s.columns + W) {
        for (int k = 0; k < W; ++k) {  // short rows: sums of padded rows, without a zero before them
          std::array<T, W> lanes{};
          std::copy_n(p + k * s.columns, s.columns, lanes.begin());
          dst[row + k] = over_lanes<kSum, T, W>(lanes) / divisor;
        }
        row += W - 1;
        continue;
      }
      switch (s.what) {
        case kMax: value = reduce_row<kMax, T, W>(p, s.columns); break;
        case kMin: value = reduce_row<kMin, T, W>(p, s.columns); break;
        case kSquares:
        case kRoot: value = reduce_row<kSquares, T, W>(p, s.columns); break;
        case kProduct: value = reduce_row<kProduct, T, W>(p, s.columns); break;
        default: value = reduce_row<kSum, T, W>(p, s.columns);
      }
      dst[row] = s.what == kRoot ? std::sqrt(value) : value / divisor;
    }
  }
}

// acc [0, width) and `steps` rows of `width` values, `stride` apart: four rows at a time.
template <int kWhat, class T>
void rows_into(T* acc, const T* p, std::int64_t steps, std::int64_t stride, std::int64_t width) {
  std::int64_t s = 0;
  for (; s + 4 <= steps; s += 4, p += 4 * stride)
    for (std::int64_t c = 0; c < width; ++c)
      acc[c] = combine<kWhat>(acc[c], combine<kWhat>(combine<kWhat>(p[c], p[stride + c]),
                                                     combine<kWhat>(p[2 * stride + c], p[3 * stride + c])));
  for (; s < steps; ++s, p += stride)
    for (std::int64_t c = 0; c < width; ++c) acc[c] = combine<kWhat>(acc[c], p[c]);
}

template <int kWhat, class T>
void reduce_columns(const HostColumns& s, const T* src, T* dst) {
  static_assert(kMostHostColumns * sizeof(T) <= kMostScratch);
  const Scratch scratch;
  T* const acc = static_cast<T*>(scratch.data);
  const T divisor = static_cast<T>(s.divisor);
  const std::int64_t stride = s.fold * s.inner, whole = s.reduced / s.fold, rest = s.reduced % s.fold * s.inner;
  for (std::int64_t o = 0; o < s.outer; ++o)
    for (std::int64_t begin = 0; begin < s.inner; begin += s.tile) {
      const std::int64_t columns = std::min(s.tile, s.inner - begin), width = s.fold > 1 ? stride : columns;
      const T* const p = src + o * s.reduced * s.inner + begin;
      std::fill_n(acc, width, first<kWhat, T>());
      rows_into<kWhat>(acc, p, whole, stride, width);
      if (rest > 0) rows_into<kWhat>(acc, p + whole * stride, 1, stride, rest);
      for (std::int64_t f = 1; f < s.fold; ++f)
        for (std::int64_t c = 0; c < s.inner; ++c) acc[c] = combine<kWhat>(acc[c], acc[f * s.inner + c]);
      for (std::int64_t c = 0; c < columns; ++c) dst[o * s.inner + begin + c] = acc[c] / divisor;
    }
}

// ---- products

// N lanes of T, aligned as T.
template <class T, int N>
using Lanes __attribute__((vector_size(N * sizeof(T)), aligned(alignof(T)), may_alias)) = T;

template <class T, int N>
Lanes<T, N> load_lanes(const T* from) {
  Lanes<T, N> lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}
template <class T, int N>
void store_lanes(Lanes<T, N> lanes, T* to) {
  std::memcpy(to, &lanes, sizeof lanes);
}
template <class T, int N>
Lanes<T, N> all_lanes(T value) {
  return value - Lanes<T, N>{};  // zeros keep their sign
}
template <class T, int N>
Lanes<T, N> fused_lanes(Lanes<T, N> a, Lanes<T, N> b, Lanes<T, N> c) {
  [[maybe_unused]] constexpr bool is_float = std::is_same_v<T, float>;
#if defined(__AVX512F__)
  if constexpr (is_float && N == 16) return (Lanes<T, N>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
  if constexpr (!is_float && N == 8) return (Lanes<T, N>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#endif
#if defined(__FMA__)
  if constexpr (is_float && N == 8) return (Lanes<T, N>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
  if constexpr (is_float && N == 4) return (Lanes<T, N>)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
  if constexpr (!is_float && N == 4) return (Lanes<T, N>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
  if constexpr (!is_float && N == 2) return (Lanes<T, N>)_mm_fmadd_pd((__m128d)a, (__m128d)b, (__m128d)c);
#endif
  Lanes<T, N> result;
  for (int l = 0; l < N; ++l) result[l] = fused(a[l], b[l], c[l]);
  return result;
}

// R x N sums in registers, of rows of a and neighbouring columns of b; rows of out are kProductColumns apart.
constexpr std::int64_t kProductColumns = 64;
template <int R, int N, class T>
void sums_of_rows(const HostProduct& s, const T* a, const T* b, std::int64_t b_row, T* out) {
  constexpr int widest = (kThisLevel == HostLevel::avx512 ? 64 : 32) / sizeof(T), width = std::min(N, widest),
                count = N / width;
  if constexpr (N == 1) {
    T acc[R] = {};
    for (std::int64_t p = 0; p < s.k; ++p)
      for (int r = 0; r < R; ++r) acc[r] = fused(a[r * s.a_row + p * s.a_col], b[p * b_row], acc[r]);
    for (int r = 0; r < R; ++r) out[r * kProductColumns] = acc[r];
  } else {
    Lanes<T, width> acc[R][count] = {};
    for (std::int64_t p = 0; p < s.k; ++p) {
      Lanes<T, width> right[count];
      for (int q = 0; q < count; ++q) right[q] = load_lanes<T, width>(b + p * b_row + q * width);
      for (int r = 0; r < R; ++r) {
        const Lanes<T, width> left = all_lanes<T, width>(a[r * s.a_row + p * s.a_col]);
        for (int q = 0; q < count; ++q) acc[r][q] = fused_lanes<T, width>(left, right[q], acc[r][q]);
      }
    }
    for (int r = 0; r < R; ++r)
      for (int q = 0; q < count; ++q) store_lanes<T, width>(acc[r][q], out + r * kProductColumns + q * width);
  }
}

// out [R, n] = the sums of R rows; the columns of b are neighbours.
template <int R, class T>
void rows_of_product(const HostProduct& s, const T* a, const T* b, std::int64_t b_row, T* out, std::int64_t n) {
  constexpr int wide = kThisLevel == HostLevel::avx512 ? 32 : 16;  // R x wide sums fit into the registers
  std::int64_t j = 0;
  for (; j + wide <= n; j += wide) sums_of_rows<R, wide>(s, a, b + j, b_row, out + j);
  if constexpr (wide > 16)
    for (; j + 16 <= n; j += 16) sums_of_rows<R, 16>(s, a, b + j, b_row, out + j);
  for (; j + 8 <= n; j += 8) sums_of_rows<R, 8>(s, a, b + j, b_row, out + j);
  for (; j + 4 <= n; j += 4) sums_of_rows<R, 4>(s, a, b + j, b_row, out + j);
  for (; j < n; ++j) sums_of_rows<R, 1>(s, a, b + j, b_row, out + j);
}

template <class T>
T sum_of_products(const HostProduct& s, const T* a, const T* b) {
  T sum = 0;
  for (std::int64_t p = 0; p < s.k; ++p) sum = fused(a[p * s.a_col], b[p * s.b_row], sum);
  return sum;
}

// Adds the lanes of W vectors, each in the order of over_lanes: lane c of the result is the sum of from[c]. A step adds
// the halves of what is left of two vectors, side by side in one.
template <class T, int W, int kLeft, int... I>
Lanes<T, W> halves_added(Lanes<T, W> a, Lanes<T, W> b, std::integer_sequence<int, I...>) {
  constexpr int half = kLeft / 2;
  // Lane i of the result takes lane i % half of group i / half; groups have kLeft lanes, of a and then of b.
  return __builtin_shufflevector(a, b, (I / half * kLeft + I % half)...) +
         __builtin_shufflevector(a, b, (I / half * kLeft + half + I % half)...);
}
template <class T, int W, int kLeft = W>
Lanes<T, W> lanes_added(Lanes<T, W>* from) {
  if constexpr (kLeft == 1) {
    return from[0];
  } else {
    for (int i = 0; i < kLeft / 2; ++i)
      from[i] = halves_added<T, W, kLeft>(from[2 * i], from[2 * i + 1], std::make_integer_sequence<int, W>());
    return lanes_added<T, W, kLeft / 2>(from);
  }
}

// What is left of k after the last whole vector is at the end of a vector where k has one, else at the beginning; its
// other lanes are 0.
template <class T, int W>
struct Rest {
  explicit Rest(std::int64_t k) : begin(k >= W ? k - W : 0), count(static_cast<int>(k % W)), is_short(k < W) {
    for (int l = 0; l < W; ++l) is_in[l] = l >= W - count ? Word{-1} : Word{0};
  }
  Lanes<T, W> of(const T* row) const {
    if (!is_short) return is_in ? load_lanes<T, W>(row + begin) : Lanes<T, W>{};
    std::array<T, W> lanes{};
    std::copy_n(row, count, lanes.begin());
    return load_lanes<T, W>(lanes.data());
  }
  using Word = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  const std::int64_t begin;
  const int count;
  const bool is_short;
  Lanes<Word, W> is_in;
};

// Sums of gemm_dot: of a and of kColumns columns of b, which are W or 1.
template <class T, int W, int kColumns>
void dots(const T* a, const T* b, std::int64_t b_col, std::int64_t k, const Rest<T, W>& rest, T* out) {
  Lanes<T, W> acc[kColumns] = {};
  for (std::int64_t p = 0; p + W <= k; p += W) {
    const Lanes<T, W> left = load_lanes<T, W>(a + p);
    for (int c = 0; c < kColumns; ++c) acc[c] = fused_lanes<T, W>(left, load_lanes<T, W>(b + c * b_col + p), acc[c]);
  }
  if (rest.count > 0) {
    const Lanes<T, W> left = rest.of(a);
    for (int c = 0; c < kColumns; ++c) acc[c] = fused_lanes<T, W>(left, rest.of(b + c * b_col), acc[c]);
  }
  if constexpr (kColumns == W) {
    store_lanes<T, W>(lanes_added<T, W>(acc), out);
  } else {
    std::array<T, W> lanes;
    store_lanes<T, W>(acc[0], lanes.data());
    *out = over_lanes<kSum, T, W>(lanes);
  }
}

// Sums of `rows` rows of the product and n of its columns, which the lanes of vectors of W lie along.
template <class T, int W>
void sums_by_lanes(const HostProduct& s, const T* a, const T* columns, std::int64_t rows, std::int64_t n, T* sums) {
  const Rest<T, W> rest(s.k);
  for (std::int64_t r = 0; r < rows; ++r, a += s.a_row, sums += kProductColumns) {
    std::int64_t j = 0;
    for (; j + W <= n; j += W) dots<T, W, W>(a, columns + j * s.b_col, s.b_col, s.k, rest, sums + j);
    for (; j < n; ++j) dots<T, W, 1>(a, columns + j * s.b_col, s.b_col, s.k, rest, sums + j);
  }
}

// Stores a row of n sums as the launch asks.
template <class T>
void store_sums(const HostProduct& s, const T* sums, const T* bias, const T* residual, T* c, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) {
    T v = sums[j];
    if (s.accumulates) v = v + c[j];
    if (bias) v = v + bias[j];
    if (residual) v = v + residual[j];
    c[j] = (s.relu || s.relu6) && v < 0 ? T{0} : s.relu6 && v > T{6} ? T{6} : v;
  }
  if (!s.hard_swish) return;
  for (std::int64_t j = 0; j < n; ++j) {
    const T v = c[j], inside = v * ((v + T{3}) * static_cast<T>(0.16666666666666667));
    c[j] = v <= T{-3} ? T{0} : v >= T{3} ? v : inside;
  }
}

// by_lanes is sums_by_lanes of the launch's width, so that all widths share the rest; it is compiled once a type.
template <class T>
[[gnu::noinline]] void product(const HostProduct& s, const T* a0, const T* b0, const T* bias, const T* residual, T* c,
                               std::int64_t first, std::int64_t last, decltype(&sums_by_lanes<T, 2>) by_lanes) {
  constexpr std::int64_t tile = kProductColumns, most_turned = 256;
  constexpr int together = 4;
  static_assert(most_turned * tile * sizeof(T) <= kMostScratch);
  const Scratch scratch;
  T* const turned = static_cast<T*>(scratch.data);
  T sums[together * tile];
  for (std::int64_t z = first; z < last; ++z) {
    const T* const a = a0 + z / s.inner * s.a_outer + z % s.inner * s.a_inner;
    const T* const b = b0 + z / s.inner * s.b_outer + z % s.inner * s.b_inner;
    for (std::int64_t begin = 0; begin < s.n; begin += tile) {
      const std::int64_t n = std::min(tile, s.n - begin);
      const T* columns = b + begin * s.b_col;
      std::int64_t b_row = s.b_row;
      const bool is_turned = !s.by_lanes && s.b_col != 1 && s.k <= most_turned;
      if (is_turned) {  // columns become neighbours
        for (std::int64_t j = 0; j < n; ++j)
          for (std::int64_t p = 0; p < s.k; ++p) turned[p * tile + j] = columns[j * s.b_col + p * s.b_row];
        columns = turned;
        b_row = tile;
      }
      const auto store = [&](std::int64_t i, const T* row) {
        const std::int64_t at = (z * s.m + i) * s.n + begin;
        store_sums(s, row, bias ? bias + begin : nullptr, residual ? residual + at : nullptr, c + at, n);
      };
      std::int64_t i = 0;
      if (is_turned || (!s.by_lanes && s.b_col == 1)) {
        for (; i + together <= s.m; i += together) {
          rows_of_product<together>(s, a + i * s.a_row, columns, b_row, sums, n);
          for (int r = 0; r < together; ++r) store(i + r, sums + r * tile);
        }
        for (; i < s.m; ++i) {
          rows_of_product<1>(s, a + i * s.a_row, columns, b_row, sums, n);
          store(i, sums);
        }
      }
      for (; s.by_lanes && i < s.m; i += together) {
        const std::int64_t rows = std::min<std::int64_t>(together, s.m - i);
        by_lanes(s, a + i * s.a_row, columns, rows, n, sums);
        for (std::int64_t r = 0; r < rows; ++r) store(i + r, sums + r * tile);
      }
      for (; i < s.m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) sums[j] = sum_of_products(s, a + i * s.a_row, columns + j * s.b_col);
        store(i, sums);
      }
    }
  }
}

// The width of vectors as a constant.
template <class Visit>
void with_width(int width, Visit visit) {
  switch (width) {
    case 16: return visit(std::integral_constant<int, 16>());
    case 8: return visit(std::integral_constant<int, 8>());
    case 4: return visit(std::integral_constant<int, 4>());
    default: return visit(std::integral_constant<int, 2>());
  }
}

}  // namespace
template <HostLevel L, class T>
void host_reduce_rows_at(const HostRows& shape, const T* src, T* dst) {
  with_width(shape.width, [&](auto width) { reduce_rows<T, width>(shape, src, dst); });
}
template void host_reduce_rows_at<kThisLevel, float>(const HostRows&, const float*, float*);
template void host_reduce_rows_at<kThisLevel, double>(const HostRows&, const double*, double*);

template <HostLevel L, class T>
void host_reduce_columns_at(const HostColumns& shape, const T* src, T* dst) {
  if (shape.what == kMax) return reduce_columns<kMax>(shape, src, dst);
  if (shape.what == kMin) return reduce_columns<kMin>(shape, src, dst);
  if (shape.what == kProduct) return reduce_columns<kProduct>(shape, src, dst);
  reduce_columns<kSum>(shape, src, dst);
}
template void host_reduce_columns_at<kThisLevel, float>(const HostColumns&, const float*, float*);
template void host_reduce_columns_at<kThisLevel, double>(const HostColumns&, const double*, double*);

template <HostLevel L, class T>
void host_reduce_whole_at(int what, std::int64_t outer, std::int64_t reduced, std::int64_t inner, const T* src,
                          T* dst) {
  for (std::int64_t i = 0; i < outer * inner; ++i) {
    const T* const p = src + i / inner * reduced * inner + i % inner;
    T value = p[0];
    for (std::int64_t r = 1; r < reduced; ++r) {
      const T x = p[r * inner];
      const auto a = static_cast<std::make_unsigned_t<T>>(value), b = static_cast<std::make_unsigned_t<T>>(x);
      value = what == kMax   ? std::max(value, x)
              : what == kMin ? std::min(value, x)
                             : static_cast<T>(what == kProduct ? a * b : a + b);
    }
    dst[i] = value;
  }
}
template void host_reduce_whole_at<kThisLevel, std::int32_t>(int, std::int64_t, std::int64_t, std::int64_t,
                                                             const std::int32_t*, std::int32_t*);
template void host_reduce_whole_at<kThisLevel, std::int64_t>(int, std::int64_t, std::int64_t, std::int64_t,
                                                             const std::int64_t*, std::int64_t*);

template <HostLevel L, class T>
void host_argmax_at(std::int64_t outer, std::int64_t reduced, std::int64_t inner, const T* src, std::int32_t* dst) {
  for (std::int64_t i = 0; i < outer * inner; ++i) {
    const T* const p = src + i / inner * reduced * inner + i % inner;
    std::int64_t best = 0;
    for (std::int64_t r = 1; r < reduced; ++r) {
      const T x = p[r * inner], largest = p[best * inner];
      if (x > largest || (x != x && largest == largest)) best = r;
    }
    dst[i] = static_cast<std::int32_t>(best);
  }
}
template void host_argmax_at<kThisLevel, float>(std::int64_t, std::int64_t, std::int64_t, const float*, std::int32_t*);
template void host_argmax_at<kThisLevel, double>(std::int64_t, std::int64_t, std::int64_t, const double*,
                                                 std::int32_t*);

template <HostLevel L, class T>
void host_sums_at(const HostScan& s, const T* src, T* dst) {
  using Sum =
      typename std::conditional_t<std::is_floating_point_v<T>, std::type_identity<T>, std::make_unsigned<T>>::type;
  const auto plus = [](T a, T b) { return static_cast<T>(static_cast<Sum>(a) + static_cast<Sum>(b)); };
  const std::int64_t step = s.is_reversed ? -s.inner : s.inner;
  for (std::int64_t o = 0; o < s.outer; ++o) {
    std::int64_t at = (o * s.depth + (s.is_reversed ? s.depth - 1 : 0)) * s.inner;
    if (s.inner == 1) {
      T sum = 0;
      for (std::int64_t d = 0; d < s.depth; ++d, at += step) {
        const T next = plus(sum, src[at]);
        dst[at] = s.is_exclusive ? sum : next;
        sum = next;
      }
      continue;
    }
    for (std::int64_t i = 0; i < s.inner; ++i) dst[at + i] = s.is_exclusive ? T{0} : src[at + i];
    for (std::int64_t d = 1; d < s.depth; ++d) {
      at += step;
      const T* const x = src + (s.is_exclusive ? at - step : at);
      const T* const before = dst + at - step;
      T* const to = dst + at;
      for (std::int64_t i = 0; i < s.inner; ++i) to[i] = plus(before[i], x[i]);
    }
  }
}
template void host_sums_at<kThisLevel, float>(const HostScan&, const float*, float*);
template void host_sums_at<kThisLevel, double>(const HostScan&, const double*, double*);
template void host_sums_at<kThisLevel, std::int32_t>(const HostScan&, const std::int32_t*, std::int32_t*);
template void host_sums_at<kThisLevel, std::int64_t>(const HostScan&, const std::int64_t*, std::int64_t*);

template <HostLevel L, class T>
void host_products_at(const HostScan& s, const T* src, T* dst) {
  for (std::int64_t o = 0; o < s.outer; ++o)
    for (std::int64_t i = 0; i < s.inner; ++i) {
      T product = 1;
      for (std::int64_t d = 0; d < s.depth; ++d) {
        const std::int64_t at = (o * s.depth + d) * s.inner + i;
        product *= src[at];
        dst[at] = product;
      }
    }
}
template void host_products_at<kThisLevel, float>(const HostScan&, const float*, float*);
template void host_products_at<kThisLevel, double>(const HostScan&, const double*, double*);

template <HostLevel L, class T>
void host_arange_at(std::int64_t n, T start, T step, bool is_fused, T* dst) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T at = static_cast<T>(i);
    dst[i] = is_fused ? fused(at, step, start) : at * step + start;
  }
}
template void host_arange_at<kThisLevel, float>(std::int64_t, float, float, bool, float*);
template void host_arange_at<kThisLevel, double>(std::int64_t, double, double, bool, double*);

template <HostLevel L, class T>
void host_product_at(const HostProduct& shape, const T* a, const T* b, const T* bias, const T* residual, T* c,
                     std::int64_t begin, std::int64_t end) {
  with_width(shape.width,
             [&](auto width) { product<T>(shape, a, b, bias, residual, c, begin, end, &sums_by_lanes<T, width>); });
}
template void host_product_at<kThisLevel, float>(const HostProduct&, const float*, const float*, const float*,
                                                 const float*, float*, std::int64_t, std::int64_t);
template void host_product_at<kThisLevel, double>(const HostProduct&, const double*, const double*, const double*,
                                                  const double*, double*, std::int64_t, std::int64_t);

}  // namespace samebytes::detail
