// A cache of a sampler's layouts for the most recently used epochs. A layout is a pure function of the epoch, so
// threads and resuming have no effect on it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "core/mutex.h"

namespace samebytes::detail {

template <class Layout>
class EpochLayouts {
 public:
  explicit EpochLayouts(std::function<Layout(std::int64_t epoch)> make) : make_(std::move(make)) {}

  std::shared_ptr<const Layout> at(std::int64_t epoch) const {
    const MutexLock lock(mutex_);
    if (const auto found = layouts_.find(epoch); found != layouts_.end()) return found->second;
    auto layout = std::make_shared<const Layout>(make_(epoch));
    constexpr std::size_t kKept = 2;  // two loaders, or a pass that ends while the next one begins
    while (layouts_.size() >= kKept)
      layouts_.erase(epoch > layouts_.begin()->first ? layouts_.begin() : --layouts_.end());
    return layouts_[epoch] = std::move(layout);
  }

 private:
  const std::function<Layout(std::int64_t)> make_;
  mutable Mutex mutex_;
  mutable std::map<std::int64_t, std::shared_ptr<const Layout>> layouts_ SAMEBYTES_GUARDED_BY(mutex_);
};

}  // namespace samebytes::detail
