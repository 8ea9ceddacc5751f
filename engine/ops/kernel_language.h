// OpenCL C as C++, as far as the files of cl/cpu use it that host_kernels_native.cpp includes: vectors with their
// operators, and built-in functions that round exactly. Built-in functions that a driver may round in its own way are
// missing, so that a text that calls one does not compile. Everything has internal linkage, because each level of
// instructions has its own. Requires: every other header is included before this one, which defines words of the
// language as macros.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace samebytes::detail {
namespace {

using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;

template <class T>
using WordOf = std::conditional_t<sizeof(T) == 8, long, std::conditional_t<sizeof(T) == 4, int, short>>;

// N lanes of T, aligned as T.
template <class T, int N>
struct Vector {
  typedef T Lanes __attribute__((vector_size(N * sizeof(T)), aligned(alignof(T)), may_alias));
  Lanes lanes;

  Vector() = default;
  Vector(Lanes value) : lanes(value) {}
  template <class S, class = std::enable_if_t<std::is_arithmetic_v<S>>>
  Vector(S value) : lanes(all(static_cast<T>(value), std::make_integer_sequence<int, N>())) {}

  using Truth = Vector<WordOf<T>, N>;
  friend Vector operator+(Vector a, Vector b) { return a.lanes + b.lanes; }
  friend Vector operator-(Vector a, Vector b) { return a.lanes - b.lanes; }
  friend Vector operator*(Vector a, Vector b) { return a.lanes * b.lanes; }
  friend Vector operator/(Vector a, Vector b) { return a.lanes / b.lanes; }
  friend Vector operator&(Vector a, Vector b) { return a.lanes & b.lanes; }
  friend Vector operator|(Vector a, Vector b) { return a.lanes | b.lanes; }
  friend Vector operator^(Vector a, Vector b) { return a.lanes ^ b.lanes; }
  friend Vector operator<<(Vector a, int n) { return a.lanes << n; }
  friend Vector operator>>(Vector a, int n) { return a.lanes >> n; }
  friend Truth operator<(Vector a, Vector b) { return (typename Truth::Lanes)(a.lanes < b.lanes); }
  friend Truth operator<=(Vector a, Vector b) { return (typename Truth::Lanes)(a.lanes <= b.lanes); }
  friend Truth operator>(Vector a, Vector b) { return (typename Truth::Lanes)(a.lanes > b.lanes); }
  friend Truth operator>=(Vector a, Vector b) { return (typename Truth::Lanes)(a.lanes >= b.lanes); }
  friend Truth operator==(Vector a, Vector b) { return (typename Truth::Lanes)(a.lanes == b.lanes); }
  friend Truth operator!=(Vector a, Vector b) { return (typename Truth::Lanes)(a.lanes != b.lanes); }
  Vector operator-() const { return -lanes; }
  Vector operator~() const { return ~lanes; }
  Vector& operator+=(Vector b) { return *this = *this + b; }
  Vector& operator-=(Vector b) { return *this = *this - b; }
  Vector& operator*=(Vector b) { return *this = *this * b; }

 private:
  template <int... I>
  static Lanes all(T value, std::integer_sequence<int, I...>) {
    return Lanes{(static_cast<void>(I), value)...};
  }
};

// The lower or upper half of the lanes; one lane is a scalar.
template <int kFirst, class T, int N>
auto half_of(Vector<T, N> a) {
  if constexpr (N == 2) {
    return a.lanes[kFirst];
  } else {
    Vector<T, N / 2> half;
    std::memcpy(&half, reinterpret_cast<const char*>(&a) + kFirst * sizeof(T), sizeof half);
    return half;
  }
}
template <class T, int N>
auto low_half(Vector<T, N> a) {
  return half_of<0>(a);
}
template <class T, int N>
auto high_half(Vector<T, N> a) {
  return half_of<N / 2>(a);
}

template <class T, int N>
Vector<T, N> select(Vector<T, N> no, Vector<T, N> yes, typename Vector<T, N>::Truth condition) {
  return condition.lanes < 0 ? yes.lanes : no.lanes;
}
template <class To, class T, int N>
Vector<To, N> as(Vector<T, N> a) {
  return (typename Vector<To, N>::Lanes)a.lanes;
}
template <class To, class T, int N>
Vector<To, N> convert(Vector<T, N> a) {
  return __builtin_convertvector(a.lanes, typename Vector<To, N>::Lanes);
}

// Functions of a scalar, lane by lane.
template <class T, int N, class F>
Vector<T, N> each(const Vector<T, N>& a, F f) {
  Vector<T, N> result;
  for (int l = 0; l < N; ++l) result.lanes[l] = f(a.lanes[l]);
  return result;
}
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float sqrt(float a) { return __builtin_sqrtf(a); }
inline float floor(float a) { return __builtin_floorf(a); }
inline float fabs(float a) { return __builtin_fabsf(a); }
template <int N>
Vector<float, N> fma(Vector<float, N> a, Vector<float, N> b, Vector<float, N> c) {
#if defined(__AVX512F__)
  if constexpr (N == 16)
    return (typename Vector<float, N>::Lanes)_mm512_fmadd_ps((__m512)a.lanes, (__m512)b.lanes, (__m512)c.lanes);
#endif
#if defined(__FMA__)
  if constexpr (N == 8)
    return (typename Vector<float, N>::Lanes)_mm256_fmadd_ps((__m256)a.lanes, (__m256)b.lanes, (__m256)c.lanes);
#endif
  Vector<float, N> result;
  for (int l = 0; l < N; ++l) result.lanes[l] = __builtin_fmaf(a.lanes[l], b.lanes[l], c.lanes[l]);
  return result;
}
template <int N>
Vector<float, N> sqrt(Vector<float, N> a) {
  return each(a, [](float lane) { return __builtin_sqrtf(lane); });
}
template <int N>
Vector<float, N> fabs(Vector<float, N> a) {
  return as<float>(as<int>(a) & 0x7fffffff);
}

template <class T, int N>
void vstore(Vector<T, N> v, std::size_t at, T* p) {
  std::memcpy(p + at * N, &v, sizeof v);
}

template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
T min(T a, T b) {
  return b < a ? b : a;
}
template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
T max(T a, T b) {
  return a < b ? b : a;
}
template <class T, int N>
Vector<T, N> min(Vector<T, N> a, Vector<T, N> b) {
  return b.lanes < a.lanes ? b.lanes : a.lanes;
}
inline bool isnan(float x) { return x != x; }
template <class T>
T clamp(T x, T least, T most) {
  return x < least ? least : x > most ? most : x;
}
float exp(float) = delete;
float log(float) = delete;
float pow(float, float) = delete;

// The work-group that the thread runs.
struct WorkGroup {
  std::size_t id[3], count[3];
};
thread_local WorkGroup work_group;
inline std::size_t get_group_id(int axis) { return work_group.id[axis]; }
inline std::size_t get_num_groups(int axis) { return work_group.count[axis]; }

#define SAMEBYTES_NAME_VECTORS(N)      \
  using float##N = Vector<float, N>;   \
  using int##N = Vector<int, N>;       \
  using uint##N = Vector<uint, N>;     \
  using long##N = Vector<long, N>;     \
  using ulong##N = Vector<ulong, N>;   \
  using ushort##N = Vector<ushort, N>; \
  using uchar##N = Vector<uchar, N>;
SAMEBYTES_NAME_VECTORS(2)
SAMEBYTES_NAME_VECTORS(4)
SAMEBYTES_NAME_VECTORS(8)
SAMEBYTES_NAME_VECTORS(16)
#undef SAMEBYTES_NAME_VECTORS

}  // namespace
}  // namespace samebytes::detail

#define vstore4 vstore
#define vstore8 vstore
#define vstore16 vstore
#define as_int4(x) as<int>(x)
#define as_int8(x) as<int>(x)
#define as_int16(x) as<int>(x)
#define as_float4(x) as<float>(x)
#define as_float8(x) as<float>(x)
#define as_float16(x) as<float>(x)
#define as_uint(x) std::bit_cast<uint>(x)
#define as_int(x) std::bit_cast<int>(x)
#define as_float(x) std::bit_cast<float>(x)
#define convert_int4(x) convert<int>(x)
#define convert_int8(x) convert<int>(x)
#define convert_int16(x) convert<int>(x)
#define convert_float4(x) convert<float>(x)
#define convert_float8(x) convert<float>(x)
#define convert_float16(x) convert<float>(x)
#define convert_uchar4(x) convert<uchar>(x)
#define convert_uchar8(x) convert<uchar>(x)
#define convert_uchar16(x) convert<uchar>(x)

// Of common.clh: pointers come with their offsets, and there is one address space.
#define ARRAY(T, x) T* restrict x
#define ARRAY_INPLACE(T, x) T* x
#define START(x)
#define SB_AT(T, x) T* restrict x
#define SB_AT_INPLACE(T, x) T* x
#define SB_LOW(v) low_half(v)
#define SB_HIGH(v) high_half(v)
#define SB_IN_EACH_SPACE(DEFINE, T) DEFINE(T, __global)
#define SB_LANES (vmask(vmask::Lanes{SB_JOIN(SB_LANES_VW, VW)}))

#define __kernel
#define __global
#define __private
#define __local
#define restrict __restrict
#define __attribute__(x)
