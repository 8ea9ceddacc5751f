// Spectrograms of sounds: short-time Fourier transform, mel filters, logarithm. Computed on the host, in the loader's
// threads, if a data set asks for it. All objects are const after construction; several threads may use them at once.
// Formulas and defaults are torchaudio's (transforms.Spectrogram, MelSpectrogram); options give librosa's. The FFT is
// kissfft, in double.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "samebytes/host_array.h"

namespace samebytes::detail {
class RealFft;
}

namespace samebytes::data {

struct SpectrogramOptions {
  int fft = 400;        // samples per transform
  int window = 0;       // width of the periodic Hann window in the middle of these; 0: fft
  int hop = 0;          // samples from frame to frame; 0: half the window
  double power = 2;     // of the magnitude: 1 or 2
  bool centre = true;   // frame i is centred on sample i * hop; the ends are padded by fft / 2 samples
  bool reflect = true;  // the padding mirrors the sound (torchaudio); false: zeros (librosa)
};

class Spectrogram {
 public:
  // Throws ArgumentError for sizes below 1, a window larger than fft, a power other than 1 or 2.
  explicit Spectrogram(const SpectrogramOptions& options = {});
  std::int64_t bins() const { return options_.fft / 2 + 1; }  // bin k is frequency k * rate / fft
  // F = 1 + samples / hop, or without centre 1 + (samples - fft) / hop. Throws ArgumentError if the sound is too short:
  // below fft, or below fft / 2 + 1 if its ends are mirrored.
  std::int64_t frames(std::int64_t samples) const;
  // |sum over n of window[n] x[i hop + n] exp(-2 pi j k n / fft)|^power as [F, bins] f32.
  HostArray operator()(std::span<const float> sound) const;
  const SpectrogramOptions& options() const { return options_; }

 private:
  friend class MelSpectrogram;
  template <class Act>
  void for_each_frame(std::span<const float> sound, Act act) const;
  SpectrogramOptions options_;
  std::vector<double> window_;  // [fft]
  std::shared_ptr<const detail::RealFft> fft_;
};

// htk: 2595 log10(1 + f / 700), torchaudio's default; slaney: linear below 1 kHz and logarithmic above, librosa's.
enum class MelScale : char { htk, slaney };
double hz_to_mel(double hz, MelScale scale = MelScale::htk);
double mel_to_hz(double mel, MelScale scale = MelScale::htk);

struct MelOptions {
  double rate = 16000;  // samples per second
  int mels = 40;        // filters
  double low = 0;       // Hz, where the first triangle begins
  double high = 0;      // Hz, where the last one ends; 0: rate / 2
  MelScale scale = MelScale::htk;
  bool area = false;  // divides each triangle by half its width in Hz (librosa's norm "slaney")
  bool log = true;    // takes log(max(value, floor))
  double floor = 1e-10;
  SpectrogramOptions spectrum = {};
};

class MelSpectrogram {
 public:
  // Throws ArgumentError for frequencies out of order or above rate / 2, and for a filter that is too narrow to contain
  // a bin (use fewer mels or a larger fft).
  explicit MelSpectrogram(const MelOptions& options = {});
  std::int64_t mels() const { return options_.mels; }
  std::int64_t frames(std::int64_t samples) const { return spectrogram_.frames(samples); }
  // [F, mels] f32, the sums of the spectrogram under triangles of height 1. The second form writes to `dst`, which has
  // frames(sound.size()) * mels() values.
  HostArray operator()(std::span<const float> sound) const;
  void apply(std::span<const float> sound, std::span<float> dst) const;

 private:
  struct Filter {
    std::size_t first = 0;  // bin
    std::vector<double> weights;
  };
  MelOptions options_;
  Spectrogram spectrogram_;
  std::vector<Filter> filters_;
};

}  // namespace samebytes::data
