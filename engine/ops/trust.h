// Updates of Lars and Lamb (samebytes/optim): rates that follow the norms of each parameter. They work on flat cells
// [n] in which every parameter is a segment, with zeros between them. engine/ops/trust.cpp.
#pragma once

#include <cstdint>
#include <span>

#include "samebytes/array.h"

namespace samebytes::detail {

// Where the segments lie, cut into chunks for the kernels. A value, made once for a layout.
class TrustSegments {
 public:
  // Throws ArgumentError unless offsets rise in steps of 16 elements, each segment ends before the next one's offset
  // and all lie in [0, n), n being a multiple of 16.
  TrustSegments(std::span<const std::int64_t> offsets, std::span<const std::int64_t> sizes, std::int64_t n);
  // Covers only the segments in [begin, end), each of which must lie entirely inside: the others are not updated, and
  // the cells of momentum and moments, [end - begin], hold only these elements. Throws ArgumentError for other bounds.
  TrustSegments(std::span<const std::int64_t> offsets, std::span<const std::int64_t> sizes, std::int64_t n,
                std::int64_t begin, std::int64_t end);
  const Array& table() const { return table_; }  // i32 [chunks, 4]
  std::int64_t n() const { return n_; }
  std::int64_t begin() const { return begin_; }
  std::int64_t end() const { return end_; }

 private:
  Array table_;
  std::int64_t n_, begin_, end_;
};

struct LarsStep {
  double rate = 0.0, momentum = 0.0, weight_decay = 0.0, trust = 0.0, eps = 0.0;
  bool nesterov = false;
};
// Nodes that overwrite the cells: one launch for the norms, one for the update. For each segment
// ratio = |p| > 0 and |g| > 0 ? trust |p| / (|g| + weight_decay |p| + eps) : 1; d = ratio (g + weight_decay p);
// b = momentum b + d; p -= rate (nesterov ? d + momentum b : b). The result is the ratio of each chunk [chunks].
// control, of the dtype of p, has what only the device knows where a scaler may skip steps: [0] is 0 where this one
// is skipped and no cell changes. For Lamb [1] and [2] stand for 1 / correction1 and 1 / sqrt(correction2).
// Both throw ArgumentError unless p and gradient are f32 or f64 [n], the other cells of that type, as long as the
// segments say.
Array lars_update(const Array& p, const Array& momentum_buffer, const Array& gradient, const TrustSegments& segments,
                  const LarsStep& step, const Array& control = {});

struct LambStep {
  double rate = 0.0, beta1 = 0.0, beta2 = 0.0;
  double correction1 = 1.0, correction2 = 1.0;  // 1 - beta^t
  double eps = 0.0, weight_decay = 0.0;
};
// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; r = m / correction1 / (sqrt(v / correction2) + eps) +
// weight_decay p; p -= rate (|p| > 0 and |r| > 0 ? |p| / |r| : 1) r. The result is the new p.
Array lamb_update(const Array& p, const Array& moment1, const Array& moment2, const Array& gradient,
                  const TrustSegments& segments, const LambStep& step, const Array& control = {});

}  // namespace samebytes::detail
