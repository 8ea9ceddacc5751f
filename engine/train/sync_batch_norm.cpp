#include "train/sync_batch_norm.h"

#include <algorithm>

#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::detail {

Array sync_batch_norm(Meeting& meeting, std::size_t place, const BatchNormCall& call, std::vector<Array>* updates) {
  const Shape shape = call.src.shape();
  const std::int64_t channels = shape.back(), rows = channels == 0 ? 0 : shape.size() / channels;
  const Dtype real = call.scale.dtype();
  const Array x = reshape(astype(call.src, real), {rows, channels});
  const Array own_mean = mean(x, {0}), from_mean = x - own_mean;
  const auto all = meeting.meet(place, {own_mean, mean(from_mean * from_mean, {0}), static_cast<double>(rows)});
  double total = 0;
  for (const Meeting::Moments& each : all) total += each.rows;
  Array centre, variance;
  for (const Meeting::Moments& each : all) {
    const Array part = each.mean * (each.rows / total);
    centre = centre.defined() ? centre + part : part;
  }
  for (const Meeting::Moments& each : all) {
    const Array away = each.mean - centre;
    const Array part = (each.variance + away * away) * (each.rows / total);
    variance = variance.defined() ? variance + part : part;
  }
  if (updates != nullptr && is_grad_enabled()) {
    const double m = call.options.momentum, unbiased = total / std::max(1.0, total - 1);
    const auto follow = [&](const Array& running, const Array& now) {
      updates->push_back(update(running, running * (1 - m) + stop_gradient(now) * m));
    };
    follow(call.running_mean, centre);
    follow(call.running_var, variance * unbiased);
  }
  const Array y = (x - centre) * (rsqrt(variance + static_cast<double>(call.options.eps)) * call.scale) + call.shift;
  return astype(reshape(y, shape), call.src.dtype());
}

}  // namespace samebytes::detail
