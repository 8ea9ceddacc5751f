// Mixup and cutmix: they mix the samples of a batch in pairs, as collates that wrap another one. Labels become
// probabilities [N, classes] f32, which cross_entropy accepts. Random numbers are a function of (seed, epoch, step).
//   data::Loader batches(engine, cifar.train, {.batch = 128, .shuffle = true, .collate = data::mixup({.classes =
//   10})});
#pragma once

#include <cstddef>
#include <cstdint>

#include "samebytes/data/collate.h"

namespace samebytes::data {

struct MixOptions {
  std::int64_t classes = 0;
  double alpha = 1;        // the share of the first of a pair is drawn from Beta(alpha, alpha), once per batch; above 0
  double probability = 1;  // of mixing a batch; labels become probabilities in any case
  std::size_t image = 0;   // index of the field to mix, f32; for cutmix images [H, W, C], f32 or u8
  std::size_t label = 1;   // index of the label field: i32 or i64 [] from 0 to classes - 1
};

// Each sample becomes share * itself + (1 - share) * the one before it in the batch (the last one for the first), and
// so do the labels. H. Zhang et al., "mixup: beyond empirical risk minimization", ICLR 2018. inner: null for
// default_collate(). All three functions throw ArgumentError for invalid options; Loader throws it for fields that do
// not fit, and the loop for a label out of range.
CollatePtr mixup(const MixOptions& options, CollatePtr inner = {});

// Replaces a rectangle of each image, with area 1 - share and cut at the edges, by that of the previous image; labels
// are mixed by the area that was replaced. S. Yun et al., "CutMix: regularization strategy to train strong
// classifiers", ICCV 2019.
CollatePtr cutmix(const MixOptions& options, CollatePtr inner = {});

// Applies one of the two to each batch, with equal probability.
CollatePtr mixup_or_cutmix(const MixOptions& options, CollatePtr inner = {});

}  // namespace samebytes::data
