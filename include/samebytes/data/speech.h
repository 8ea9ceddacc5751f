// Spoken digits: the Free Spoken Digit Dataset (Z. Jackson and others, CC BY-SA 4.0), recordings named
// {digit}_{speaker}_{take}.wav.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "samebytes/data/sets.h"
#include "samebytes/data/spectrogram.h"

namespace samebytes::data {

struct SpeechOptions {
  std::int64_t samples =
      0;  // per sound: longer ones keep their beginning, shorter ones are padded with zeros; 0: the longest
  // Replaces the sound by the field "mel" [F, mels] f32, computed when the sample is decoded. rate 0: the files' rate.
  std::optional<MelOptions> mel = {};
  bool speaker = false;  // adds a field "speaker" [] i32: index into the sorted names
  int test_takes = 5;    // takes 0 to test_takes - 1 of each digit and speaker are the test part, as by the authors
};

// The folder holds the files, a subfolder "recordings" with them, or a .tar, .tar.gz, .tgz or .zip of them. Fields
// "sound" [T, 1] f32 (see wav.h) or "mel", then "label" [] i32, then "speaker"; split.classes is "0" to "9". The files
// are read into host memory once. Throws IoError for a folder without such files, a name of another form, a damaged
// file, and one with several channels or a different rate from the first; ArgumentError for an invalid option.
Split speech_digits(const std::string& folder, const SpeechOptions& options = {});

}  // namespace samebytes::data
