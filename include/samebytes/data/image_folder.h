// A folder of images: one subfolder for each class, as torchvision's ImageFolder reads it. Files are decoded when their
// sample is asked for, in the loader's threads, into the batch's own row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "samebytes/data/dataset.h"

namespace samebytes::data {

struct ImageFolderOptions {
  std::int64_t height = 0, width = 0;  // of the field "image"; both 0: the size of the first image
  int channels = 3;                    // 1 grey, 3 RGB, 4 RGB and alpha (see image.h)
  bool resize = true;  // images of another size are resized (resize_bilinear), without regard to their proportions;
                       // false: they are an error
  bool raw = false;    // true: the field "image" is u8
};

struct ImageFolder {
  DatasetPtr set;                    // fields "image" [H, W, C] f32 in 0 .. 1, and "label" [] i32
  std::vector<std::string> classes;  // names of the subfolders, sorted: label i is classes[i]
  std::vector<std::string> paths;    // of sample i
};

// Takes .png, .jpg and .jpeg (in any case) from the subfolders and the folders in them, sorted by path. Throws IoError
// for a missing folder, one without subfolders, and a subfolder without images; ArgumentError for one size without the
// other, or other channels. Reading a sample throws IoError naming the file that is damaged, or that has another size
// where resize is false.
ImageFolder image_folder(const std::string& folder, const ImageFolderOptions& options = {});

}  // namespace samebytes::data
