#include "data/fft.h"

#include <algorithm>
#include <vector>

#include <kissfft/kissfft.hh>

namespace samebytes::detail {
namespace {

// A real transform of an even size is a complex one of half the size.
bool is_halved(int size) { return size % 2 == 0; }

}  // namespace

struct RealFft::Plan {
  explicit Plan(int size) : fft(static_cast<std::size_t>(is_halved(size) ? size / 2 : size), false) {}
  kissfft<double> fft;
};

RealFft::RealFft(int size) : size_(size), plan_(std::make_unique<Plan>(size)) {}
RealFft::~RealFft() = default;
RealFft::RealFft(const RealFft& other) : size_(other.size_), plan_(std::make_unique<Plan>(*other.plan_)) {}

void RealFft::operator()(std::span<const double> samples, std::span<std::complex<double>> spectrum) {
  if (is_halved(size_)) {
    plan_->fft.transform_real(samples.data(), spectrum.data());
    const std::size_t half = samples.size() / 2;  // the last bin is packed into the first one's imaginary part
    spectrum[half] = spectrum[0].imag();
    spectrum[0] = spectrum[0].real();
  } else {
    const std::vector<std::complex<double>> complex_samples(samples.begin(), samples.end());
    plan_->fft.transform(complex_samples.data(), spectrum.data());
  }
}

}  // namespace samebytes::detail
