// Pointwise kernels on the host; ops/host.h says what they promise.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/host.h"

namespace samebytes::detail {
namespace {

constexpr std::int64_t kLanes = 64;  // elements that an instruction works on at once
using Code = HostInstruction::Code;

inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float root(float a) { return __builtin_sqrtf(a); }
inline double root(double a) { return __builtin_sqrt(a); }

// Whole numbers wrap around, as they do in kernels.
inline std::uint32_t word(std::int32_t a) { return static_cast<std::uint32_t>(a); }
inline std::int32_t bits(std::uint32_t a) { return static_cast<std::int32_t>(a); }

// ---- pointwise

template <class R>
struct Registers {
  alignas(64) R real[HostPointwise::kMostRegisters][kLanes];
  std::int32_t* whole(int at) { return reinterpret_cast<std::int32_t*>(real[at]); }
};

template <class To, class From>
void load(To* to, const From* from, std::int64_t stride, std::int64_t n) {
  if (stride == 0) {
    const To value = static_cast<To>(*from);
    for (std::int64_t i = 0; i < n; ++i) to[i] = value;
  } else if (stride == 1) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i * stride]);
  }
}

template <class To, class From>
void store(To* to, const From* from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i]);
}

// Outside the range of an int a vector unit gives the smallest one, which C++ leaves open.
template <class R>
std::int32_t to_int(R v) {
  constexpr R limit = static_cast<R>(2147483648.0);
  return v >= -limit && v < limit ? static_cast<std::int32_t>(v) : std::numeric_limits<std::int32_t>::min();
}

#define SAMEBYTES_EACH(target, expression)                   \
  {                                                          \
    auto* const to = target;                                 \
    for (std::int64_t l = 0; l < n; ++l) to[l] = expression; \
    break;                                                   \
  }

template <class R>
void execute(const std::vector<HostInstruction>& code, Registers<R>& file, std::int64_t n) {
  for (const HostInstruction& at : code) {
    const R *const a = file.real[at.a], *const b = file.real[at.b], *const c = file.real[at.c];
    const std::int32_t *const ia = file.whole(at.a), *const ib = file.whole(at.b), *const ic = file.whole(at.c);
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
      case Code::multiply_add: SAMEBYTES_EACH(r, fused(a[l], b[l], c[l]))
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
      case Code::select: SAMEBYTES_EACH(r, ia[l] != 0 ? b[l] : c[l])
      case Code::select_i: SAMEBYTES_EACH(i, ia[l] != 0 ? ib[l] : ic[l])
      case Code::to_real: SAMEBYTES_EACH(r, static_cast<R>(ia[l]))
      case Code::to_int: SAMEBYTES_EACH(i, to_int(a[l]))
    }
  }
}
#undef SAMEBYTES_EACH

template <class T>
const T* array(void* const* arrays, std::size_t k) {
  return static_cast<const T*>(arrays[k]);
}

template <class R>
void run_pointwise(const HostPointwise& p, void* const* arrays, const double* scalars) {
  static thread_local Registers<R> file;
  const std::int64_t inner = p.sizes.back(), width = std::min(inner, kLanes);
  for (const HostPointwise::Constant& constant : p.constants) {
    if (constant.is_real)
      std::fill_n(file.real[constant.to], width, static_cast<R>(constant.value));
    else
      std::fill_n(file.whole(constant.to), width, static_cast<std::int32_t>(constant.value));
  }
  for (const HostPointwise::Parameter& parameter : p.parameters)
    std::fill_n(file.real[parameter.to], width, static_cast<R>(scalars[parameter.scalar]));
  const std::size_t outer_axes = p.sizes.size() - 1;
  std::int64_t rows = 1;
  for (std::size_t axis = 0; axis < outer_axes; ++axis) rows *= p.sizes[axis];
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t begin = 0; begin < inner; begin += kLanes) {
      const std::int64_t n = std::min(kLanes, inner - begin);
      for (std::size_t k = 0; k < p.inputs.size(); ++k) {
        const HostPointwise::Input& input = p.inputs[k];
        std::int64_t at = begin * input.strides.back(), rest = row;
        for (std::size_t axis = outer_axes; axis-- > 0;) {
          at += rest % p.sizes[axis] * input.strides[axis];
          rest /= p.sizes[axis];
        }
        const std::int64_t stride = input.strides.back();
        switch (input.dtype) {
          case Dtype::f64: load(file.real[input.to], array<double>(arrays, k) + at, stride, n); break;
          case Dtype::i32: load(file.whole(input.to), array<std::int32_t>(arrays, k) + at, stride, n); break;
          case Dtype::u8:
          case Dtype::bool_: load(file.whole(input.to), array<std::uint8_t>(arrays, k) + at, stride, n); break;
          default: load(file.real[input.to], array<float>(arrays, k) + at, stride, n);
        }
      }
      execute(p.code, file, n);
      const std::int64_t at = row * inner + begin;
      for (std::size_t k = 0; k < p.outputs.size(); ++k) {
        void* const to = arrays[p.inputs.size() + k];
        const int from = p.outputs[k].from;
        switch (p.outputs[k].dtype) {
          case Dtype::f64: store(static_cast<double*>(to) + at, file.real[from], n); break;
          case Dtype::i32: store(static_cast<std::int32_t*>(to) + at, file.whole(from), n); break;
          case Dtype::u8:
          case Dtype::bool_: store(static_cast<std::uint8_t*>(to) + at, file.whole(from), n); break;
          default: store(static_cast<float*>(to) + at, file.real[from], n);
        }
      }
    }
  }
}

}  // namespace

void host_pointwise(const HostPointwise& kernel, void* const* arrays, const double* scalars) {
  if (kernel.is_double)
    run_pointwise<double>(kernel, arrays, scalars);
  else
    run_pointwise<float>(kernel, arrays, scalars);
}

}  // namespace samebytes::detail
