// Losses as objects with PyTorch's names: options once, then loss(input, target). They hold no parameters, and they are
// not Modules, since a Module's forward takes one array. Each calls the function of ops/losses.h that its definition
// names; see there for shapes, formula and errors:
//   nn::CrossEntropyLoss criterion({.label_smoothing = 0.1f});
//   adam.step(criterion(net(image), label));
#pragma once

#include <concepts>

#include "samebytes/ops/losses.h"

namespace samebytes::nn {

template <class Options, auto kFunction>
class Loss {
 public:
  explicit Loss(const Options& options = {}) : options_(options) {}

  Array operator()(const Input& a) const requires std::invocable<decltype(kFunction), const Input&, const Options&> {
    return kFunction(a, options_);
  }
  Array operator()(const Input& a, const Input& b)
      const requires std::invocable<decltype(kFunction), const Input&, const Input&, const Options&> {
    return kFunction(a, b, options_);
  }
  Array operator()(const Input& a, const Input& b, const Input& c)
      const requires std::invocable<decltype(kFunction), const Input&, const Input&, const Input&, const Options&> {
    return kFunction(a, b, c, options_);
  }
  const Options& options() const { return options_; }

 private:
  Options options_;
};

// As Loss, for functions whose default margin is 0.
template <auto kFunction>
class MarginLoss {
 public:
  explicit MarginLoss(const MarginOptions& options = {.margin = 0.0}) : options_(options) {}
  Array operator()(const Input& a, const Input& b, const Input& target) const {
    return kFunction(a, b, target, options_);
  }
  const MarginOptions& options() const { return options_; }

 private:
  MarginOptions options_;
};

// loss(input, target)
using CrossEntropyLoss = Loss<CrossEntropyOptions, cross_entropy>;
using NllLoss = Loss<NllOptions, nll_loss>;
using FocalLoss = Loss<FocalOptions, focal_loss>;
using SigmoidFocalLoss = Loss<SigmoidFocalOptions, sigmoid_focal_loss>;
using MultiMarginLoss = Loss<MultiMarginOptions, multi_margin_loss>;
using BceWithLogitsLoss = Loss<Reduction, bce_with_logits>;
using BceLoss = Loss<Reduction, bce_loss>;
using KlDivLoss = Loss<KlDivOptions, kl_div>;
using MseLoss = Loss<Reduction, mse_loss>;
using L1Loss = Loss<Reduction, l1_loss>;
using SmoothL1Loss = Loss<SmoothL1Options, smooth_l1_loss>;
using HuberLoss = Loss<HuberOptions, huber_loss>;
using HingeLoss = Loss<MarginOptions, hinge_loss>;
using HingeEmbeddingLoss = Loss<MarginOptions, hinge_embedding_loss>;
// loss(x, weight, labels)
using LinearCrossEntropyLoss = Loss<LinearCrossEntropyOptions, linear_cross_entropy>;
// loss(mean, target, var)
using GaussianNllLoss = Loss<GaussianNllOptions, gaussian_nll_loss>;
// loss(first, second, target)
using MarginRankingLoss = MarginLoss<margin_ranking_loss>;
using CosineEmbeddingLoss = MarginLoss<cosine_embedding_loss>;
// loss(anchor, positive, negative)
using TripletMarginLoss = Loss<TripletMarginOptions, triplet_margin_loss>;
// loss(z)
using NtXentLoss = Loss<NtXentOptions, nt_xent_loss>;

}  // namespace samebytes::nn
