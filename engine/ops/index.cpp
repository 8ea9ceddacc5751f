// x[...]: a chain of slices, squeezes and new axes, all of them views.
#include <algorithm>
#include <string>
#include <vector>

#include "graph/op.h"
#include "samebytes/ops.h"

namespace samebytes {

Array Array::operator[](const Index& index) const { return (*this)[std::span<const Index>(&index, 1)]; }
Array Array::operator[](std::initializer_list<Index> indices) const {
  return (*this)[std::span<const Index>(indices.begin(), indices.size())];
}

Array Array::operator[](std::span<const Index> indices) const {
  detail::require(defined(), "operator[]", "needs an array", *this, "src");
  using Kind = Index::Kind;
  const auto count = [&](Kind kind) {
    return static_cast<int>(
        std::count_if(indices.begin(), indices.end(), [=](const Index& index) { return index.kind == kind; }));
  };
  const int named = count(Kind::number) + count(Kind::slice), rank = shape().rank();
  if (named > rank || count(Kind::ellipsis) > 1)
    throw ArgumentError("operator[]: expected at most one index for each axis and one ellipsis, got " +
                        std::to_string(named) + " and " + std::to_string(count(Kind::ellipsis)) + ", src is " +
                        detail::describe(*this));
  Array result = *this;
  int axis = 0;  // of the result
  for (const Index& index : indices) {
    if (index.kind == Kind::ellipsis) {
      axis += rank - named;
    } else if (index.kind == Kind::new_axis) {
      result = unsqueeze(result, axis++);
    } else if (index.kind == Kind::number) {
      const std::int64_t n = result.shape()[axis];
      if (index.start < -n || index.start >= n)
        throw ArgumentError("operator[]: index " + std::to_string(index.start) + " is outside an axis of size " +
                            std::to_string(n) + ", src is " + detail::describe(*this));
      const std::int64_t at = index.start < 0 ? index.start + n : index.start;
      result = squeeze(samebytes::slice(result, axis, at, at + 1), axis);
    } else {
      const std::int64_t n = result.shape()[axis];
      const bool is_forward = index.step > 0;
      const std::int64_t start = index.start != Index::kOpen ? index.start
                                 : is_forward                ? 0
                                                             : std::max<std::int64_t>(n - 1, 0);
      const std::int64_t stop = index.stop != Index::kOpen ? index.stop : is_forward ? n : -n - 1;
      const bool is_whole = start == 0 && stop >= n && index.step == 1;
      if (!is_whole) result = samebytes::slice(result, axis, start, stop, index.step);
      ++axis;
    }
  }
  return result;
}

}  // namespace samebytes
