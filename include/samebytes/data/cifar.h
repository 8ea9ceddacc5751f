// CIFAR-10 and CIFAR-100 in their binary form (A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images",
// 2009): per image one label byte (CIFAR-100: the coarse one, then the fine one), then 1024 red, 1024 green and 1024
// blue bytes. The files are read into host memory once and stay bytes; a pixel becomes a float in the batch's own row.
//   const data::Split cifar = data::cifar10("data/cifar10");
//   data::Loader batches(engine, cifar.train, {.batch = 128, .shuffle = true,
//                        .transforms = {data::normalise(data::channel_moments(*cifar.train))}});
#pragma once

#include <string>

#include "samebytes/data/sets.h"

namespace samebytes::data {

struct CifarOptions {
  bool raw = false;     // true: the field "image" is u8, as in the file
  bool coarse = false;  // CIFAR-100: the label is one of the 20 groups instead of one of the 100 classes
};

// Fields "image" [32, 32, 3] f32 in 0 .. 1 (pixel / 255) and "label" [] i32; split.classes has the ten names. The
// folder holds data_batch_1.bin to data_batch_5.bin and test_batch.bin, or train.bin and test.bin, plain or .gz; the
// folder that the archive makes, cifar-10-batches-bin, may lie in it. A set packed as JPEGs, train.jpegs and test.jpegs
// ("C10J", a 32-bit count, then per image a label byte, a 16-bit size and the JPEG, little-endian), is unpacked when it
// is read. Throws IoError for a missing file, one that does not end with an image, and a label above 9.
Split cifar10(const std::string& folder, const CifarOptions& options = {});

// The same for CIFAR-100's train.bin and test.bin (in cifar-100-binary, or in the folder itself). split.classes has the
// names in fine_label_names.txt (or coarse_label_names.txt) where that file is there.
Split cifar100(const std::string& folder, const CifarOptions& options = {});

}  // namespace samebytes::data
