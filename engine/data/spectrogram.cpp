#include "samebytes/data/spectrogram.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <utility>

#include "data/fft.h"
#include "samebytes/error.h"

namespace samebytes::data {
namespace {

void check_positive(const char* what, int value) {
  if (value < 1)
    throw ArgumentError("spectrogram: " + std::string(what) + " must be 1 or more, got " + std::to_string(value));
}

constexpr double kSlaneyStep = 200.0 / 3.0;  // Hz per mel below kSlaneyBreak
constexpr double kSlaneyBreak = 1000.0;      // Hz
const double kSlaneyLog = std::log(6.4) / 27.0;

}  // namespace

Spectrogram::Spectrogram(const SpectrogramOptions& options) : options_(options) {
  check_positive("fft", options.fft);
  if (options_.window == 0) options_.window = options_.fft;
  check_positive("window", options_.window);
  if (options_.window > options_.fft)
    throw ArgumentError("spectrogram: expected a window of at most " + std::to_string(options_.fft) +
                        " samples (fft), got " + std::to_string(options_.window));
  if (options_.hop == 0) options_.hop = std::max(options_.window / 2, 1);
  check_positive("hop", options_.hop);
  if (options.power != 1 && options.power != 2)
    throw ArgumentError("spectrogram: power must be 1 or 2, got " + std::to_string(options.power));
  window_.resize(static_cast<std::size_t>(options_.fft));
  const auto before = static_cast<std::size_t>((options_.fft - options_.window) / 2);
  for (int i = 0; i < options_.window; ++i)
    window_[before + static_cast<std::size_t>(i)] =
        options_.window == 1 ? 1.0
                             : 0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) /
                                                    static_cast<double>(options_.window));
  fft_ = std::make_shared<const detail::RealFft>(options_.fft);
}

std::int64_t Spectrogram::frames(std::int64_t samples) const {
  const std::int64_t least = !options_.centre ? options_.fft : options_.reflect ? options_.fft / 2 + 1 : 1;
  if (samples < least)
    throw ArgumentError("spectrogram: expected a sound of at least " + std::to_string(least) + " samples, got " +
                        std::to_string(samples));
  return 1 + (options_.centre ? samples : samples - options_.fft) / options_.hop;
}

// Calls act(frame, magnitudes raised to the power).
template <class Act>
void Spectrogram::for_each_frame(std::span<const float> sound, Act act) const {
  const auto samples = static_cast<std::int64_t>(sound.size());
  const std::int64_t count = frames(samples), size = options_.fft;
  std::vector<double> piece(static_cast<std::size_t>(size)), powers(static_cast<std::size_t>(bins()));
  std::vector<std::complex<double>> spectrum(piece.size());
  detail::RealFft fft = *fft_;
  for (std::int64_t frame = 0; frame < count; ++frame) {
    const std::int64_t begin = frame * options_.hop - (options_.centre ? size / 2 : 0);
    for (std::int64_t i = 0; i < size; ++i) {
      std::int64_t place = begin + i;
      if (options_.reflect && place < 0) place = -place;
      if (options_.reflect && place >= samples) place = 2 * (samples - 1) - place;
      const bool is_inside = place >= 0 && place < samples;
      const auto at = static_cast<std::size_t>(i);
      piece[at] = is_inside ? window_[at] * static_cast<double>(sound[static_cast<std::size_t>(place)]) : 0.0;
    }
    fft(piece, spectrum);
    for (std::size_t bin = 0; bin < powers.size(); ++bin)
      powers[bin] = options_.power == 1 ? std::abs(spectrum[bin]) : std::norm(spectrum[bin]);
    act(frame, std::span<const double>(powers));
  }
}

HostArray Spectrogram::operator()(std::span<const float> sound) const {
  HostArray result(Shape{frames(static_cast<std::int64_t>(sound.size())), bins()}, f32);
  const std::span<float> dst = result.as<float>();
  for_each_frame(sound, [&](std::int64_t frame, std::span<const double> powers) {
    std::transform(powers.begin(), powers.end(), dst.begin() + frame * bins(),
                   [](double value) { return static_cast<float>(value); });
  });
  return result;
}

double hz_to_mel(double hz, MelScale scale) {
  if (scale == MelScale::htk) return 2595.0 * std::log10(1.0 + hz / 700.0);
  return hz < kSlaneyBreak ? hz / kSlaneyStep : kSlaneyBreak / kSlaneyStep + std::log(hz / kSlaneyBreak) / kSlaneyLog;
}

double mel_to_hz(double mel, MelScale scale) {
  if (scale == MelScale::htk) return 700.0 * (std::pow(10.0, mel / 2595.0) - 1.0);
  const double corner = kSlaneyBreak / kSlaneyStep;
  return mel < corner ? mel * kSlaneyStep : kSlaneyBreak * std::exp((mel - corner) * kSlaneyLog);
}

MelSpectrogram::MelSpectrogram(const MelOptions& options) : options_(options), spectrogram_(options.spectrum) {
  const auto complain = [](const std::string& text) { throw ArgumentError("mel_spectrogram: " + text); };
  if (!(options.rate > 0)) complain("rate must be above 0, got " + std::to_string(options.rate));
  if (options.mels < 1) complain("mels must be 1 or more, got " + std::to_string(options.mels));
  if (options_.high == 0) options_.high = options.rate / 2;
  if (!(options_.low >= 0 && options_.low < options_.high && options_.high <= options.rate / 2))
    complain("expected 0 <= low < high <= rate / 2 = " + std::to_string(options.rate / 2) + " Hz, got low " +
             std::to_string(options_.low) + " and high " + std::to_string(options_.high));
  if (options.log && !(options.floor > 0)) complain("floor must be above 0, got " + std::to_string(options.floor));

  const auto mels = static_cast<std::size_t>(options.mels);
  const double first = hz_to_mel(options_.low, options.scale), last = hz_to_mel(options_.high, options.scale);
  std::vector<double> corners(mels + 2);
  for (std::size_t i = 0; i < corners.size(); ++i)
    corners[i] =
        mel_to_hz(first + (last - first) * static_cast<double>(i) / static_cast<double>(mels + 1), options.scale);
  for (std::size_t mel = 0; mel < mels; ++mel) {
    const double from = corners[mel], top = corners[mel + 1], to = corners[mel + 2];
    Filter filter;
    for (std::int64_t bin = 0; bin < spectrogram_.bins(); ++bin) {
      const double hz = static_cast<double>(bin) * options.rate / static_cast<double>(spectrogram_.options().fft);
      const double weight = std::min((hz - from) / (top - from), (to - hz) / (to - top));
      if (weight <= 0) continue;
      if (filter.weights.empty()) filter.first = static_cast<std::size_t>(bin);
      filter.weights.push_back(options.area ? weight * 2.0 / (to - from) : weight);
    }
    if (filter.weights.empty())
      complain("every filter wants a bin, filter " + std::to_string(mel) + " from " + std::to_string(from) + " to " +
               std::to_string(to) + " Hz has none; ask for fewer mels or a larger fft");
    filters_.push_back(std::move(filter));
  }
}

void MelSpectrogram::apply(std::span<const float> sound, std::span<float> dst) const {
  const auto samples = static_cast<std::int64_t>(sound.size());
  if (static_cast<std::int64_t>(dst.size()) != frames(samples) * mels())
    throw ArgumentError("mel_spectrogram: expected room for " + std::to_string(frames(samples) * mels()) +
                        " values, got " + std::to_string(dst.size()));
  spectrogram_.for_each_frame(sound, [&](std::int64_t frame, std::span<const double> powers) {
    for (std::size_t mel = 0; mel < filters_.size(); ++mel) {
      const Filter& filter = filters_[mel];
      double sum = 0;
      for (std::size_t i = 0; i < filter.weights.size(); ++i) sum += filter.weights[i] * powers[filter.first + i];
      if (options_.log) sum = std::log(std::max(sum, options_.floor));
      dst[static_cast<std::size_t>(frame * mels()) + mel] = static_cast<float>(sum);
    }
  });
}

HostArray MelSpectrogram::operator()(std::span<const float> sound) const {
  HostArray result(Shape{frames(static_cast<std::int64_t>(sound.size())), mels()}, f32);
  apply(sound, result.as<float>());
  return result;
}

}  // namespace samebytes::data
