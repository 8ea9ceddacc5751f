// Built instead of fft.cpp where SAMEBYTES_SOUND is off.
#include "core/missing_part.h"
#include "data/fft.h"

namespace samebytes::detail {

struct RealFft::Plan {};

RealFft::RealFft(int) : size_(0) {
  throw_missing("spectrogram", "Fourier transform", "SAMEBYTES_SOUND", "package libkissfft-dev");
}
RealFft::~RealFft() = default;
RealFft::RealFft(const RealFft& other) : size_(other.size_) {}
void RealFft::operator()(std::span<const double>, std::span<std::complex<double>>) {}

}  // namespace samebytes::detail
