// One reader for whatever labelled samples a folder holds, for programs that get the folder from their user.
#pragma once

#include <cstdint>
#include <string>

#include "samebytes/data/sets.h"

namespace samebytes::data {

struct LabelledFolderOptions {
  std::int64_t height = 0, width = 0;  // of images; both 0: their own
  int channels = 3;                    // of images: 1 grey, 3 RGB
  std::int64_t length = 0;             // of series and sounds; 0: the longest one
  std::string name = {};               // of a set in a folder of the UCR archive that has several
  double validation = 0.1;             // share of each class, where the folder does not say what is for testing
  std::uint64_t seed = 1;              // decides which
};

struct LabelledFolder {
  Split split;  // fields "image" [H, W, C] f32 in 0 .. 1, "series" [T, C] or "sound" [T, C]; then "label" []
  std::int64_t classes = 0;
  std::string kind;  // name of the first field
};

// Reads, whichever is there:
//   DIR/CLASS/*.png, .jpg, .jpeg or .wav (image_folder.h, sound_folder.h), divided by `validation`;
//   DIR/train/CLASS/* and DIR/val/CLASS/* (or valid, validation, test), which must have the same classes;
//   MNIST's four files (sets.h), CIFAR-10's or CIFAR-100's binary files (cifar.h);
//   NAME_TRAIN.* and NAME_TEST.* of the UCR archive (ucr.h), each channel of each series with mean 0 and deviation 1.
// Images get the size and the channels that are asked for. Throws IoError for a folder with none of these, and as the
// readers do; ArgumentError for a share outside 0 to 1, and for a folder of several series sets without `name`.
LabelledFolder labelled_folder(const std::string& folder, const LabelledFolderOptions& options = {});

}  // namespace samebytes::data
