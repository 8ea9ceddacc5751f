// Reader for sound in WAV files (RIFF WAVE, "Multimedia Programming Interface and Data Specifications 1.0", 1991, and
// WAVE_FORMAT_EXTENSIBLE).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "samebytes/host_array.h"

namespace samebytes::data {

struct Wav {
  int rate = 0;       // samples per second
  HostArray samples;  // [T, channels] f32, -1 .. 1
};

// Whole numbers of 8 (unsigned), 16, 24 and 32 bits become value / 2^(bits - 1); floats of 32 and 64 bits stay as they
// are. Any number of channels; chunks other than "fmt " and "data" are ignored. Plain or gzip. Throws IoError with the
// byte for a missing or truncated file, one that is not RIFF WAVE, another encoding (A-law, ADPCM, ...), and
// inconsistent sizes.
Wav read_wav(const std::string& path);

// The same for a file in memory; `name` stands for the path in errors.
Wav parse_wav(std::string_view name, std::span<const std::byte> bytes);

}  // namespace samebytes::data
