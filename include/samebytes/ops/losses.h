// Soft-max and losses: engine/ops/softmax.cpp, cross_entropy.cpp, linear_cross_entropy.cpp, losses.cpp,
// label_losses.cpp, distance_losses.cpp. A loss of 16-bit inputs is f32. Reduction::mean divides by the number of
// losses unless stated otherwise; the mean of an empty array is NaN. All throw ArgumentError with the op's name, what
// it expected and what it got.
#pragma once

#include <cstdint>
#include <optional>

#include "samebytes/array.h"

namespace samebytes {

Array softmax(const Input& a);  // over the last axis
Array softmax(const Input& a, int axis);
Array log_softmax(const Input& a);  // over the last axis
Array log_softmax(const Input& a, int axis);
enum class Reduction : std::uint8_t { mean, sum, none };

// ---- for classes

struct CrossEntropyOptions {
  float label_smoothing = 0.0f;                // in [0, 1)
  std::optional<std::int32_t> ignore_index{};  // rows with this label are ignored
  Array class_weight{};                        // [C] or an empty handle
  Reduction reduction = Reduction::mean;
  int axis = -1;  // of the classes: 1 for PyTorch's [N, C, H, W]
};
// logits [N, C]; target i32, i64 or u8 [N] of class indices, or floating [N, C] of probabilities; more axes may precede
// C. Defined as in PyTorch, including the weighted mean. The loss of 16-bit logits is f32; class_weight gets no
// gradient. A label outside [0, C) gives NaN, which check_nan finds; readers of data sets check labels earlier.
Array cross_entropy(const Input& logits, const Input& target, const CrossEntropyOptions& options = {});

struct LinearCrossEntropyOptions {
  Array bias{};                                // [V] or an empty handle
  float label_smoothing = 0.0f;                // in [0, 1)
  std::optional<std::int32_t> ignore_index{};  // rows with this label are ignored
  Array class_weight{};                        // [V] or an empty handle
  Reduction reduction = Reduction::mean;
  std::int64_t chunks = 0;  // of rows; 0: as many as keep a chunk's logits within 32 MiB, with 64 rows or more
  // Computes the gradient of weight and bias just before its use, from recomputed logits: a third more work, but if the
  // weight is also used at the other end of a model (a tied embedding), its gradient does not occupy memory during the
  // whole backward pass.
  bool late_weight_gradient = false;
};
// cross_entropy(linear(x, weight, bias), labels) without ever holding all logits: x [..., D], weight [V, D], labels
// i32, i64 or u8 [...]; it processes the rows in chunks and computes loss and gradients of a chunk while its logits
// exist (P. Hsu et al., "Liger Kernel: efficient Triton kernels for LLM training", 2024, section 3.2). The result
// equals that of the two ops up to the order of sums; the gradient of a 16-bit weight is rounded once per chunk. If the
// upstream gradient is computed after the loss, as for a scaled loss, the logits are computed twice.
Array linear_cross_entropy(const Input& x, const Input& weight, const Input& labels,
                           const LinearCrossEntropyOptions& options = {});

struct NllOptions {
  std::optional<std::int32_t> ignore_index{};  // rows with this label are ignored
  Array class_weight{};                        // [C] or an empty handle
  Reduction reduction = Reduction::mean;
  int axis = -1;  // of the classes
};
// -weight[t] * log_probability[.., t]: log_probability [..., C], target i32, i64 or u8 [...] of class indices. The mean
// divides by the sum of the weights. class_weight gets no gradient. A label outside [0, C) gives NaN.
Array nll_loss(const Input& log_probability, const Input& target, const NllOptions& options = {});

struct FocalOptions {
  double gamma = 2.0;    // at least 0
  Array class_weight{};  // [C] or an empty handle
  Reduction reduction = Reduction::mean;
  int axis = -1;  // of the classes
};
// -weight[t] * (1 - p[t])^gamma * log p[t] with p = softmax(logits) (T. Lin et al., "Focal loss for dense object
// detection", 2017): logits [..., C], target i32, i64 or u8 [...]. The mean divides by the number of rows.
Array focal_loss(const Input& logits, const Input& target, const FocalOptions& options = {});

struct SigmoidFocalOptions {
  double alpha = 0.25;  // weight of the positive class, 1 - alpha of the negative one; below 0: no weights
  double gamma = 2.0;   // at least 0
  Reduction reduction = Reduction::none;
};
// The same for independent classes (equation 5 of the paper): logits, and target in [0, 1], with equal shapes. As
// torchvision's sigmoid_focal_loss, which does not reduce by default.
Array sigmoid_focal_loss(const Input& logits, const Input& target, const SigmoidFocalOptions& options = {});

struct MultiMarginOptions {
  int p = 1;  // 1 or 2
  double margin = 1.0;
  Array class_weight{};  // [C] or an empty handle
  Reduction reduction = Reduction::mean;
  int axis = -1;  // of the classes
};
// sum over j != t of weight[t] * max(0, margin - score[t] + score[j])^p / C: score [..., C], target i32, i64 or u8
// [...]. class_weight gets no gradient. A label outside [0, C) gives NaN.
Array multi_margin_loss(const Input& score, const Input& target, const MultiMarginOptions& options = {});

// ---- for probabilities

Array bce_with_logits(const Input& logits, const Input& target, Reduction reduction = Reduction::mean);
// -(t log p + (1 - t) log(1 - p)) for equal shapes, with logarithms clamped to -100 as in PyTorch. p outside [0, 1]
// gives NaN.
Array bce_loss(const Input& probability, const Input& target, Reduction reduction = Reduction::mean);

struct KlDivOptions {
  bool log_target = false;  // target is a log-probability, too
  bool batch_mean = false;  // the mean divides by the size of the first axis, as the divergence is defined
  Reduction reduction = Reduction::mean;
};
// target * (log target - log_probability), for equal shapes; 0 where target is 0 (S. Kullback and R. Leibler 1951).
Array kl_div(const Input& log_probability, const Input& target, const KlDivOptions& options = {});

struct GaussianNllOptions {
  bool full = false;  // adds log(2 pi) / 2
  double eps = 1e-6;  // the variance is at least this
  Reduction reduction = Reduction::mean;
};
// (log var + (mean - target)^2 / var) / 2: mean and target have equal shapes, var has the same or a last axis of size 1
// (D. Nix and A. Weigend 1994). As in PyTorch, the gradient of var ignores its lower bound.
Array gaussian_nll_loss(const Input& mean, const Input& target, const Input& var,
                        const GaussianNllOptions& options = {});

// ---- for differences; a and b have equal shapes

Array mse_loss(const Input& a, const Input& b, Reduction reduction = Reduction::mean);
Array l1_loss(const Input& a, const Input& b, Reduction reduction = Reduction::mean);
struct SmoothL1Options {
  double beta = 1.0;  // at least 0; 0 is l1_loss
  Reduction reduction = Reduction::mean;
};
// |d| < beta ? d^2 / (2 beta) : |d| - beta / 2 with d = a - b (R. Girshick, "Fast R-CNN", 2015).
Array smooth_l1_loss(const Input& a, const Input& b, const SmoothL1Options& options = {});
struct HuberOptions {
  double delta = 1.0;  // above 0
  Reduction reduction = Reduction::mean;
};
// |d| <= delta ? d^2 / 2 : delta * (|d| - delta / 2) with d = a - b (P. Huber 1964).
Array huber_loss(const Input& a, const Input& b, const HuberOptions& options = {});

// ---- with margins; target holds 1 and -1

struct MarginOptions {
  double margin = 1.0;
  Reduction reduction = Reduction::mean;
};
// max(0, margin - target * score), for equal shapes.
Array hinge_loss(const Input& score, const Input& target, const MarginOptions& options = {});
// target 1: distance; target -1: max(0, margin - distance). Shapes are equal.
Array hinge_embedding_loss(const Input& distance, const Input& target, const MarginOptions& options = {});
// max(0, margin - target * (first - second)), for equal shapes. The default margin is 0, as in PyTorch.
Array margin_ranking_loss(const Input& first, const Input& second, const Input& target,
                          const MarginOptions& options = {.margin = 0.0});

// ---- for embeddings [N, D]

// a . b / (max(|a|, eps) max(|b|, eps)) along the axis, which the result does not have; a and b broadcast; 16-bit
// inputs give f32.
Array cosine_similarity(const Input& a, const Input& b, int axis = -1, double eps = 1e-8);
// target [N] 1: 1 - cos; target -1: max(0, cos - margin). The default margin is 0, as in PyTorch.
Array cosine_embedding_loss(const Input& a, const Input& b, const Input& target,
                            const MarginOptions& options = {.margin = 0.0});
struct TripletMarginOptions {
  double margin = 1.0;
  double eps = 1e-6;  // added to each difference
  bool swap = false;  // the negative's distance is the smaller one of its distances to anchor and positive
  Reduction reduction = Reduction::mean;
  int axis = -1;  // of the distances
};
// max(0, |anchor - positive| - |anchor - negative| + margin), Euclidean over the axis, for equal shapes [..., D] (V.
// Balntas et al. 2016).
Array triplet_margin_loss(const Input& anchor, const Input& positive, const Input& negative,
                          const TripletMarginOptions& options = {});
struct NtXentOptions {
  double temperature = 0.5;  // above 0
  Reduction reduction = Reduction::mean;
};
// T. Chen et al., "A simple framework for contrastive learning", 2020, equation 1. z [2N, D]: row i and row i + N are
// the two views of sample i. The loss is the cross-entropy of each row's cosines with all other rows, divided by the
// temperature, with its partner as the class; [2N] without reduction.
Array nt_xent_loss(const Input& z, const NtXentOptions& options = {});

}  // namespace samebytes
