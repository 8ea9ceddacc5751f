// Well-known data sets with their authors' split. Images are [H, W, 1] f32, labels are i32 classes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "samebytes/data/dataset.h"

namespace samebytes::data {

struct Split {
  DatasetPtr train;
  DatasetPtr test;
  std::vector<std::string> classes = {};  // name of label i, if the set or its files name the classes
};

struct MnistOptions {
  bool raw = false;  // true: the field "image" is u8, as in the file
  // Decoding computes (pixel / 255 - mean) / deviation. Unset: mean and deviation of the training pixels.
  std::optional<float> mean = {};
  std::optional<float> deviation = {};
  int classes = 10;  // labels must lie in 0 .. classes - 1
};

// A folder with MNIST's four IDX files (train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-...), plain or .gz:
// MNIST, Fashion-MNIST, KMNIST. Fields "image" [H, W, 1] and "label" []. The files are unpacked into host memory once.
// Throws IoError for a missing or damaged file, unequal numbers of images and labels, and labels out of range.
Split mnist(const std::string& folder, const MnistOptions& options = {});

// The UCI handwritten digits, part of the library: 1797 images of 8 by 8 with 10 classes, values 0 to 16 divided by 16;
// the first 1437 are for training, the last 360 for testing. Source: E. Alpaydin, C. Kaynak, UCI Machine Learning
// Repository (1998), CC BY 4.0.
Split digits();

}  // namespace samebytes::data
