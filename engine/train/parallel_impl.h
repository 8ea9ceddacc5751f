// What the files of DataParallel share.
#pragma once

#include <algorithm>
#include <vector>

namespace samebytes::detail {

inline constexpr std::size_t kMostSteps = 20;  // that medians are taken of

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace samebytes::detail
