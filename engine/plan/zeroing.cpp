#include "plan/zeroing.h"

#include <cstdint>

#include "graph/launch.h"

namespace samebytes::detail {

Zeroing::Zeroing(Device& device, const Storage& storage, std::size_t bytes) : device_(device) {
  const bool are_ints = bytes % sizeof(std::int32_t) == 0;
  const auto n = static_cast<std::int64_t>(are_ints ? bytes / sizeof(std::int32_t) : bytes);
  const std::int64_t start = 0;
  const std::uint64_t zero = 0;
  kernel_ = device.kernels().make_kernel(Dtype::f32, are_ints ? "fill_i32" : "fill_u8");
  geometry_ = geometry_over_elements(device, n);
  kernel_->set_storage(0, storage);
  kernel_->set_bytes(1, &start, sizeof start);
  kernel_->set_bytes(2, &n, sizeof n);
  kernel_->set_bytes(3, &zero, sizeof zero);
}

void Zeroing::enqueue(Submission& submission, const char* what) const {
  submission.enqueue(device_, *kernel_, geometry_, what);
}

}  // namespace samebytes::detail
