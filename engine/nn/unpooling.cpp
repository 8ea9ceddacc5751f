#include "samebytes/nn/unpooling.h"

#include <cmath>
#include <limits>

#include "nn/describe.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::nn {
namespace {

void require_values_and_indices(const char* layer, std::span<const Array> inputs) {
  if (inputs.size() != 2)
    throw ArgumentError(std::string(layer) + ": takes the values and their indices, got " +
                        std::to_string(inputs.size()) + " arrays");
}

void require_unpooled_rank(const char* layer, int rank, const Array& x) {
  constexpr const char* kNeeds[] = {"[N, L, C]", "[N, H, W, C]", "[N, D, H, W, C]"};
  if (x.shape().rank() != rank)
    throw ArgumentError(std::string(layer) + ": x must be " + kNeeds[rank - 3] + ", it is " + x.shape().to_string());
}

// Of the result along an axis.
int unpooled_size(std::int64_t in, int kernel, int stride, int pad, int size) {
  if (size != 0) return size;
  const double out = (static_cast<double>(in) - 1) * (stride != 0 ? stride : kernel) - 2.0 * pad + kernel;
  if (std::abs(out) > std::numeric_limits<int>::max())
    throw ArgumentError("MaxUnpool: expected fewer than 2^31 places along each axis of the result, got " +
                        std::to_string(in) + " places and a step of " + std::to_string(stride != 0 ? stride : kernel));
  return static_cast<int>(out);
}

}  // namespace

Array MaxUnpool1d::forward_all(std::span<const Array> inputs) {
  require_values_and_indices("MaxUnpool1d", inputs);
  const Array& x = inputs[0];
  require_unpooled_rank("MaxUnpool1d", 3, x);
  const auto& o = options_;
  return max_unpool1d(x, inputs[1], unpooled_size(x.shape()[1], o.kernel, o.stride, o.pad, o.size));
}
std::string MaxUnpool1d::describe() const { return describe_window("MaxUnpool1d", options_); }

Array MaxUnpool2d::forward_all(std::span<const Array> inputs) {
  require_values_and_indices("MaxUnpool2d", inputs);
  const Array& x = inputs[0];
  require_unpooled_rank("MaxUnpool2d", 4, x);
  const auto& o = options_;
  return max_unpool2d(x, inputs[1], unpooled_size(x.shape()[1], o.kernel.h, o.stride.h, o.pad.h, o.size.h),
                      unpooled_size(x.shape()[2], o.kernel.w, o.stride.w, o.pad.w, o.size.w));
}
std::string MaxUnpool2d::describe() const { return describe_window("MaxUnpool2d", options_); }

Array MaxUnpool3d::forward_all(std::span<const Array> inputs) {
  require_values_and_indices("MaxUnpool3d", inputs);
  const Array& x = inputs[0];
  require_unpooled_rank("MaxUnpool3d", 5, x);
  const auto& o = options_;
  return max_unpool3d(x, inputs[1], unpooled_size(x.shape()[1], o.kernel.d, o.stride.d, o.pad.d, o.size.d),
                      unpooled_size(x.shape()[2], o.kernel.h, o.stride.h, o.pad.h, o.size.h),
                      unpooled_size(x.shape()[3], o.kernel.w, o.stride.w, o.pad.w, o.size.w));
}
std::string MaxUnpool3d::describe() const { return describe_window("MaxUnpool3d", options_); }

}  // namespace samebytes::nn
