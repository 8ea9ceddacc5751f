// Mixing the samples of a batch in pairs: mixup and cutmix, as collates that wrap another one. Labels become
// probabilities [N, classes] f32, which cross_entropy takes. What is drawn is a function of (seed, epoch, step).
//   data::Loader batches(engine, cifar.train, {.batch = 128, .shuffle = true, .collate = data::mixup({.classes =
//   10})});
#pragma once

#include <cstddef>
#include <cstdint>

#include "samebytes/data/collate.h"

namespace samebytes::data {

struct MixOptions {
  std::int64_t classes = 0;
  double alpha = 1;        // the share of the first of a pair is drawn from Beta(alpha, alpha), once a batch; above 0
  double probability = 1;  // that a batch is mixed; labels are probabilities in any case
  std::size_t image = 0;   // place of the field that is mixed, f32; for cutmix images [H, W, C], f32 or u8
  std::size_t label = 1;   // place of the labels: i32 [] from 0 to classes - 1
};

// Each sample becomes share * itself + (1 - share) * the one before it in the batch (the last one for the first), and
// so do the labels. H. Zhang et al., "mixup: beyond empirical risk minimization", ICLR 2018. inner: null for
// default_collate(). All throw ArgumentError for wrong options, and from Loader for fields that do not fit; in the loop
// for a label out of range.
CollatePtr mixup(const MixOptions& options, CollatePtr inner = {});

// A rectangle of each image comes from the one before it, of area 1 - share, cut at the edges; labels are mixed by the
// area that was taken. S. Yun et al., "CutMix: regularization strategy to train strong classifiers", ICCV 2019.
CollatePtr cutmix(const MixOptions& options, CollatePtr inner = {});

// One or the other for each batch, equally likely.
CollatePtr mixup_or_cutmix(const MixOptions& options, CollatePtr inner = {});

}  // namespace samebytes::data
