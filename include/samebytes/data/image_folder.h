// A folder of images with one subfolder per class, as torchvision's ImageFolder reads it. The loader's threads decode a
// file when they read its sample, straight into its row of the batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "samebytes/data/dataset.h"

namespace samebytes::data {

struct ImageFolderOptions {
  std::int64_t height = 0, width = 0;  // of the field "image"; both 0: the size of the first image
  int channels = 3;                    // 1 grey, 3 RGB, 4 RGB and alpha (see image.h)
  bool resize = true;  // resizes images of another size (resize_bilinear), ignoring their aspect ratio; false: they are
                       // an error
  bool raw = false;    // true: the field "image" is u8
};

struct ImageFolder {
  DatasetPtr set;                    // fields "image" [H, W, C] f32 in 0 .. 1, and "label" [] i32
  std::vector<std::string> classes;  // names of the subfolders, sorted: label i is classes[i]
  std::vector<std::string> paths;    // of sample i
  std::vector<std::int32_t> labels;  // of sample i
};

// Takes .png, .jpg and .jpeg files (in any case) from the subfolders, recursively, sorted by path. Throws IoError for a
// missing folder, one without subfolders, and a subfolder without images; ArgumentError if only one of height and width
// is set, or for other numbers of channels. Reading a sample throws IoError, naming the file, if it is damaged or,
// without resize, has another size.
ImageFolder image_folder(const std::string& folder, const ImageFolderOptions& options = {});

}  // namespace samebytes::data
