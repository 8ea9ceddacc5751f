#include "train/parallel/batch_norm.h"

#include "samebytes/ops.h"

namespace samebytes::train::parallel {

Array sync_batch_norm(const BatchNormCall& call, const MomentsOfAll& moments_of_all) {
  const Shape shape = call.src.shape();
  const std::int64_t channels = shape.back(), rows = channels == 0 ? 0 : shape.size() / channels;
  const Array x = reshape(astype(call.src, call.scale.dtype()), {rows, channels});
  const Array own_mean = mean(x, {0}), from_mean = x - own_mean;
  const Moments<Array> all = moments_of_all({own_mean, mean(from_mean * from_mean, {0}), static_cast<double>(rows)});
  const Array factor = rsqrt(all.variance + static_cast<double>(call.options.eps)) * call.scale;
  return astype(reshape((x - all.mean) * factor + call.shift, shape), call.src.dtype());
}

}  // namespace samebytes::train::parallel
