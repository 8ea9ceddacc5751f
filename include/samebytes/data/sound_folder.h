// A folder of WAV files with one subfolder per class, as image_folder.h has images.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "samebytes/data/dataset.h"

namespace samebytes::data {

struct SoundFolderOptions {
  // Of the field "sound": longer files keep their beginning, shorter ones are padded with zeros; 0: the longest file.
  std::int64_t samples = 0;
};

struct SoundFolder {
  DatasetPtr set;                    // fields "sound" [T, channels] f32 (see wav.h) and "label" [] i32
  std::vector<std::string> classes;  // names of the subfolders, sorted: label i is classes[i]
  std::vector<std::string> paths;    // of sample i
  std::vector<std::int32_t> labels;  // of sample i
  int rate = 0;                      // of all files
};

// Takes .wav files (in any case) from the subfolders, recursively, sorted by path, and reads them into host memory
// once. Throws IoError for a missing folder, one without subfolders, a subfolder without such files, a damaged file,
// and one with another rate or number of channels than the first; ArgumentError for a negative number of samples.
SoundFolder sound_folder(const std::string& folder, const SoundFolderOptions& options = {});

}  // namespace samebytes::data
