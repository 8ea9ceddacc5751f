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
      0;  // of each sound: longer ones keep their beginning, shorter ones end in zeros; 0: the longest
  // The field "mel" [F, mels] f32 instead of the sound itself, made where the sample is decoded. rate 0: the files'
  // own.
  std::optional<MelOptions> mel = {};
  bool speaker = false;  // a field "speaker" [] i32: places in the sorted list of their names
  int test_takes = 5;    // takes 0 to test_takes - 1 of each digit and speaker are for testing, as the authors say
};

// The folder with the files, or the one with the folder "recordings", or with a .tar, .tar.gz, .tgz or .zip of them.
// Fields "sound" [T, 1] f32 (see wav.h) or "mel", then "label" [] i32, then "speaker"; split.classes is "0" to "9". The
// files are read into host memory once. Throws IoError for a folder without such files, a name of another form, a
// damaged file, one with several channels or another rate than the first; ArgumentError for a wrong option.
Split speech_digits(const std::string& folder, const SpeechOptions& options = {});

}  // namespace samebytes::data
