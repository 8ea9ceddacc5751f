// Fourier transforms. One op, the transform of complex numbers on the host; those of real numbers are made of it.
#include "samebytes/fft.h"

#include <complex>
#include <string>
#include <unsupported/Eigen/FFT>
#include <vector>

#include "graph/launch.h"
#include "ops/sizes.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace detail {
namespace {

template <class T>
void transform(std::int64_t rows, std::int64_t n, bool is_inverse, const T* src, T* dst) {
  Eigen::FFT<T> fft;
  const auto* from = reinterpret_cast<const std::complex<T>*>(src);
  auto* to = reinterpret_cast<std::complex<T>*>(dst);
  for (std::int64_t row = 0; row < rows; ++row, from += n, to += n) {
    if (n == 1)
      *to = *from;  // the library refuses that
    else if (is_inverse)
      fft.inv(to, from, n);  // with 1 / n
    else
      fft.fwd(to, from, n);
  }
}

// The transform along the last axis but one of [..., N, 2], or its inverse with 1 / N.
class Fft final : public Op {
 public:
  explicit Fft(bool is_inverse) : is_inverse_(is_inverse) {}
  std::string_view name() const override { return is_inverse_ ? "ifft" : "fft"; }
  void launch(Launch& run) const override {
    const std::int64_t n = run.src_shape(0)[-2], rows = run.src_shape(0).size() / (2 * n);
    const Operand src = run.src(0), dst = run.dst();
    const bool is_inverse = is_inverse_, is_double = run.src_dtype(0) == f64;
    run.host_call(std::string(name()), {src}, {dst}, [=](const std::function<void*(Operand)>& pointer) {
      if (is_double)
        transform(rows, n, is_inverse, static_cast<const double*>(pointer(src)), static_cast<double*>(pointer(dst)));
      else
        transform(rows, n, is_inverse, static_cast<const float*>(pointer(src)), static_cast<float*>(pointer(dst)));
    });
  }
  // The transform is symmetric; the gradient is that of the conjugate: N times the inverse, or a part of the transform.
  std::vector<Array> gradient(const GradientRequest& request) const override {
    const double n = static_cast<double>(request.src[0].shape()[-2]);
    return {is_inverse_ ? fft(request.dy[0]) / n : ifft(request.dy[0]) * n};
  }

 private:
  bool is_inverse_;
};

Array transformed(const char* op, const Array& a, bool is_inverse) {
  require(a.defined() && (a.dtype() == f32 || a.dtype() == f64) && a.shape().rank() >= 2 && a.shape().back() == 2, op,
          "needs f32 or f64 [..., N, 2] of real and imaginary parts", a, "a");
  if (a.size() == 0) return a;
  return make_array(make_op<Fft>(is_inverse), a.shape(), a.dtype(), std::span<const Array>(&a, 1));
}

}  // namespace
}  // namespace detail

Array fft(const Input& a) { return detail::transformed("fft", a, false); }
Array ifft(const Input& a) { return detail::transformed("ifft", a, true); }

Array rfft(const Input& a) {
  detail::require(
      a.defined() && (a.dtype() == f32 || a.dtype() == f64) && a.shape().rank() >= 1 && a.shape().back() > 0, "rfft",
      "needs f32 or f64 [..., N]", a, "a");
  const Array real = unsqueeze(a, -1);
  const Array whole = fft(concat({real, zeros(real.shape(), a.dtype())}, -1));
  return slice(whole, -2, 0, a.shape().back() / 2 + 1);
}

Array irfft(const Input& a, std::int64_t n) {
  detail::require(a.defined() && (a.dtype() == f32 || a.dtype() == f64) && a.shape().rank() >= 2 &&
                      a.shape().back() == 2 && a.shape()[-2] > 0,
                  "irfft", "needs f32 or f64 [..., N / 2 + 1, 2] of real and imaginary parts", a, "a");
  const std::int64_t half = a.shape()[-2];
  if (n == 0) n = 2 * (half - 1);
  if (n < 1 || n / 2 + 1 != half)
    throw ArgumentError("irfft: n / 2 + 1 must be the size of the last axis but one, n is " + std::to_string(n) +
                        ", a is " + detail::describe(a));
  const Array re = slice(a, -1, 0, 1), im = slice(a, -1, 1, 2);
  // What is its own mirror image is real.
  const std::int64_t mirrored = (n - 1) / 2;
  const Array inner = slice(a, -2, 1, 1 + mirrored);
  const Array conjugate = flip(inner, -2) * astype(array({1, -1}), a.dtype());
  std::vector<Array> parts{concat({slice(re, -2, 0, 1), slice(im, -2, 0, 1) * 0.0}, -1), inner};
  if (n % 2 == 0) parts.push_back(concat({slice(re, -2, half - 1, half), slice(im, -2, half - 1, half) * 0.0}, -1));
  parts.push_back(conjugate);
  return squeeze(slice(ifft(concat(parts, -2)), -1, 0, 1), -1);
}

}  // namespace samebytes
