// A set of bytes kept as sorted, disjoint, non-touching ranges [begin, end). Usually holds only a few ranges.
// Not thread-safe; the owner's mutex guards it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace samebytes::detail {

class Ranges {
 public:
  struct Range {
    std::size_t begin, end;
  };

  bool is_empty() const { return ranges_.empty(); }
  void clear() { ranges_.clear(); }

  void add(std::size_t begin, std::size_t end) {
    if (begin >= end) return;
    auto first = std::find_if(ranges_.begin(), ranges_.end(), [&](const Range& r) { return r.end >= begin; });
    auto last = first;
    for (; last != ranges_.end() && last->begin <= end; ++last) {
      begin = std::min(begin, last->begin);
      end = std::max(end, last->end);
    }
    first = ranges_.erase(first, last);
    ranges_.insert(first, Range{begin, end});
  }

  void remove(std::size_t begin, std::size_t end) {
    if (begin >= end) return;
    for (std::size_t i = 0; i < ranges_.size();) {
      const Range r = ranges_[i];
      if (r.end <= begin || r.begin >= end) {
        ++i;
        continue;
      }
      ranges_.erase(ranges_.begin() + static_cast<std::ptrdiff_t>(i));
      if (r.end > end) ranges_.insert(ranges_.begin() + static_cast<std::ptrdiff_t>(i), Range{end, r.end});
      if (r.begin < begin) ranges_.insert(ranges_.begin() + static_cast<std::ptrdiff_t>(i++), Range{r.begin, begin});
    }
  }

  bool meets(std::size_t begin, std::size_t end) const {
    return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& r) { return r.begin < end && begin < r.end; });
  }

  // The parts of the set inside [begin, end), in order.
  std::vector<Range> inside(std::size_t begin, std::size_t end) const {
    std::vector<Range> parts;
    for (const Range& r : ranges_)
      if (r.begin < end && begin < r.end) parts.push_back({std::max(r.begin, begin), std::min(r.end, end)});
    return parts;
  }

 private:
  std::vector<Range> ranges_;
};

}  // namespace samebytes::detail
