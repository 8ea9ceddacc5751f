// The discrete Fourier transform of real numbers, in double.
#pragma once

#include <complex>
#include <memory>
#include <span>

namespace samebytes::detail {

// It has scratch memory: a thread that uses another one's makes a copy.
class RealFft {
 public:
  // Requires: size of 1 or more.
  explicit RealFft(int size);
  ~RealFft();
  RealFft(const RealFft& other);
  RealFft& operator=(const RealFft&) = delete;
  // spectrum[k] = sum over n of samples[n] exp(-2 pi j k n / size) for k of 0 to size / 2; the rest of it is scratch.
  // Requires: `size` of both.
  void operator()(std::span<const double> samples, std::span<std::complex<double>> spectrum);

 private:
  struct Plan;
  int size_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace samebytes::detail
