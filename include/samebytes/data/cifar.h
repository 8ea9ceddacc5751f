// CIFAR-10 and CIFAR-100 in their binary format (A. Krizhevsky, "Learning Multiple Layers of Features from Tiny
// Images", 2009): per image one label byte (CIFAR-100: the coarse one, then the fine one), then 1024 red, 1024 green
// and 1024 blue bytes. The files are read into host memory once and stay bytes; the loader converts pixels to float in
// the batch's row.
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
// folder holds data_batch_1.bin to data_batch_5.bin and test_batch.bin, or train.bin and test.bin, plain or .gz; they
// may also be in its subfolder cifar-10-batches-bin, as the archive has it. A set packed as JPEGs, train.jpegs and
// test.jpegs ("C10J", a 32-bit count, then per image a label byte, a 16-bit size and the JPEG, little-endian), is
// unpacked on reading. Throws IoError for a missing file, one that ends inside an image, and a label above 9.
Split cifar10(const std::string& folder, const CifarOptions& options = {});

// The same for CIFAR-100's train.bin and test.bin (in the folder or its subfolder cifar-100-binary). split.classes has
// the names in fine_label_names.txt (or coarse_label_names.txt) if that file exists.
Split cifar100(const std::string& folder, const CifarOptions& options = {});

}  // namespace samebytes::data
