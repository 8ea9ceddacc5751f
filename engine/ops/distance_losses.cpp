// Losses of embeddings: cosines and Euclidean distances of rows. Norms are bounded from below before the square root,
// so that the gradient of a zero vector is zero.
#include <string>

#include "graph/autocast.h"
#include "graph/op.h"
#include "ops/losses.h"
#include "ops/sizes.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace {

using detail::as_dtype;
using detail::describe;
using detail::reduce_loss;
using detail::require;

// |a - b + eps| over the axis.
Array distance(const Array& a, const Array& b, double eps, int axis) {
  constexpr double kSmallest = 1e-30;  // of the squared distance
  return sqrt(clip(sum(square(a - b + eps), axis), {.low = kSmallest}));
}

}  // namespace

const detail::CastRow kCosineSimilarityCast{"cosine_similarity", CastRule::keep_f32};
Array cosine_similarity(const Input& a, const Input& b, int axis, double eps) {
  if (const detail::Casts cast(kCosineSimilarityCast); cast) return cosine_similarity(cast(a), cast(b), axis, eps);
  constexpr const char* kOp = "cosine_similarity";
  require(a.defined() && is_floating(a.dtype()), kOp, "needs floating arrays", a, "a");
  require(b.defined() && is_floating(b.dtype()), kOp, "needs floating arrays", b, "b");
  const Dtype dtype = a.dtype() == f64 || b.dtype() == f64 ? f64 : f32;
  const Shape shape = broadcast_shapes(kOp, a.shape(), b.shape());
  if (axis < -shape.rank() || axis >= shape.rank())
    throw ArgumentError("cosine_similarity: axis " + std::to_string(axis) + " is out of range, a is " + describe(a) +
                        ", b is " + describe(b));
  const Array x = broadcast_to(as_dtype(a, dtype), shape), y = broadcast_to(as_dtype(b, dtype), shape);
  const auto norm = [&](const Array& v) { return sqrt(clip(sum(square(v), {axis}), {.low = eps * eps})); };
  return sum(x * y, {axis}) / (norm(x) * norm(y));
}

const detail::CastRow kCosineEmbeddingLossCast{"cosine_embedding_loss", CastRule::keep_f32};
Array cosine_embedding_loss(const Input& a, const Input& b, const Input& target, const MarginOptions& options) {
  if (const detail::Casts cast(kCosineEmbeddingLossCast); cast)
    return cosine_embedding_loss(cast(a), cast(b), target, options);
  constexpr const char* kOp = "cosine_embedding_loss";
  constexpr double kEps = 1e-12;  // added to the squared norms, as in PyTorch
  const Dtype dtype = detail::check_pair(kOp, a, "a", b, "b");
  require(a.shape().rank() >= 1, kOp, "needs at least one axis", a, "a");
  const Shape rows(std::span<const std::int64_t>(a.shape().begin(), a.shape().end() - 1));
  require(target.defined() && target.shape() == rows, kOp,
          ("target must be " + rows.to_string() + ", a is " + describe(a)).c_str(), target, "target");
  const Array x = as_dtype(a, dtype), y = as_dtype(b, dtype), t = as_dtype(target, dtype);
  const Array squares = (sum(square(x), {-1}) + kEps) * (sum(square(y), {-1}) + kEps);
  const Array cosine = sum(x * y, {-1}) / sqrt(squares);
  const Array same = masked_fill(1.0 - cosine, detail::differs(t, 1.0), 0.0);
  const Array other = masked_fill(detail::above_zero(cosine - options.margin), detail::differs(t, -1.0), 0.0);
  return reduce_loss(same + other, options.reduction);
}

const detail::CastRow kTripletMarginLossCast{"triplet_margin_loss", CastRule::keep_f32};
Array triplet_margin_loss(const Input& anchor, const Input& positive, const Input& negative,
                          const TripletMarginOptions& options) {
  if (const detail::Casts cast(kTripletMarginLossCast); cast)
    return triplet_margin_loss(cast(anchor), cast(positive), cast(negative), options);
  constexpr const char* kOp = "triplet_margin_loss";
  const Dtype first = detail::check_pair(kOp, anchor, "anchor", positive, "positive");
  const Dtype second = detail::check_pair(kOp, anchor, "anchor", negative, "negative");
  require(anchor.shape().rank() >= 1, kOp, "needs at least one axis", anchor, "anchor");
  const int axis = detail::checked_axis(kOp, anchor, options.axis);
  const Dtype dtype = first == f64 || second == f64 ? f64 : f32;
  const Array a = as_dtype(anchor, dtype), p = as_dtype(positive, dtype), n = as_dtype(negative, dtype);
  Array far = distance(a, n, options.eps, axis);
  if (options.swap) far = minimum(far, distance(p, n, options.eps, axis));
  return reduce_loss(detail::above_zero(distance(a, p, options.eps, axis) - far + options.margin), options.reduction);
}

const detail::CastRow kNtXentLossCast{"nt_xent_loss", CastRule::keep_f32};
Array nt_xent_loss(const Input& z, const NtXentOptions& options) {
  if (const detail::Casts cast(kNtXentLossCast); cast) return nt_xent_loss(cast(z), options);
  constexpr const char* kOp = "nt_xent_loss";
  constexpr double kSmallestNorm = 1e-12;
  constexpr double kNever = -1e30;  // of a row with itself; its soft-max is 0
  require(z.defined() && is_floating(z.dtype()) && z.shape().rank() == 2 && z.shape()[0] >= 2 && z.shape()[0] % 2 == 0,
          kOp, "z must be floating [2N, D]", z, "z");
  if (!(options.temperature > 0.0))
    throw ArgumentError("nt_xent_loss: temperature must be above 0, got " + std::to_string(options.temperature));
  const Dtype dtype = z.dtype() == f64 ? f64 : f32;
  const Array x = as_dtype(z, dtype);
  const Array norm = sqrt(clip(sum(square(x), {1}, true), {.low = kSmallestNorm * kSmallestNorm}));
  const Array unit = x / norm;
  const std::int64_t rows = z.shape()[0];
  const Array numbers = arange(0, static_cast<double>(rows), 1, i32);
  const Array itself = equal(unsqueeze(numbers, 1), numbers);
  const Array logits = masked_fill(matmul(unit, transpose(unit)) / options.temperature, itself, kNever);
  return cross_entropy(logits, roll(numbers, rows / 2, 0), {.reduction = options.reduction});
}

}  // namespace samebytes
