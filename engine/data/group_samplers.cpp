// Samplers that group similar samples in a batch: proximity and bucketed.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "data/epoch_orders.h"
#include "samebytes/data/samplers.h"

namespace samebytes::data {
namespace {

void check_batch(const char* what, std::int64_t batch) {
  if (batch < 1) throw ArgumentError(std::string(what) + ": batch must be 1 or more, got " + std::to_string(batch));
}

// Streams of an epoch: the order of the groups, the order before grouping, and from here on the order within each
// group.
constexpr std::int64_t kGroups = 0, kBefore = 1, kWithin = 2;

// Maps position p of an epoch to an order with shuffled groups of `batch` and shuffled samples within them. A last
// group that is not full stays last.
std::int64_t shuffled_place(std::int64_t size, const GroupOptions& options, std::int64_t epoch, std::int64_t position) {
  const std::int64_t full = size / options.batch;
  std::int64_t group = position / options.batch;
  const std::int64_t length = group < full ? options.batch : size - full * options.batch;
  if (group < full) group = Permutation(full, options.seed, epoch, kGroups).at(group);
  const Permutation within(length, options.seed, epoch, kWithin + group);
  return group * options.batch + within.at(position % options.batch);
}

class Proximity final : public Sampler {
 public:
  Proximity(const HostArray& features, const GroupOptions& options) : options_(options) {
    check_batch("proximity", options.batch);
    if (features.dtype != f32 || features.shape.rank() < 1 || features.shape.rank() > 2)
      throw ArgumentError("proximity: features must be [n] or [n, D] f32, got " + std::string(name_of(features.dtype)) +
                          " " + features.shape.to_string());
    order_.resize(static_cast<std::size_t>(features.shape[0]));
    std::iota(order_.begin(), order_.end(), 0);
    width_ = features.shape.rank() == 2 ? static_cast<std::size_t>(features.shape[1]) : 1;
    const std::span<const float> values = features.as<float>();
    for (const float value : values)
      if (value != value) throw ArgumentError("proximity: features must be numbers, got NaN");
    if (width_ > 0) halve(values, 0, order_.size());
  }
  std::int64_t size() const override { return static_cast<std::int64_t>(order_.size()); }
  std::int64_t at(std::int64_t epoch, std::int64_t position) const override {
    return order_[static_cast<std::size_t>(shuffled_place(size(), options_, epoch, position))];
  }

 private:
  // Sorts order_[begin, end) into groups, cutting at multiples of the batch.
  void halve(std::span<const float> values, std::size_t begin, std::size_t end) {
    const auto batch = static_cast<std::size_t>(options_.batch);
    const std::size_t groups = (end - begin + batch - 1) / batch;
    if (groups < 2) return;
    const auto value = [&](std::int64_t index, std::size_t axis) {
      return values[static_cast<std::size_t>(index) * width_ + axis];
    };
    std::size_t widest = 0;
    float spread = -1;
    for (std::size_t axis = 0; axis < width_; ++axis) {
      float low = value(order_[begin], axis), high = low;
      for (std::size_t i = begin; i < end; ++i) {
        low = std::min(low, value(order_[i], axis));
        high = std::max(high, value(order_[i], axis));
      }
      if (high - low > spread) {
        spread = high - low;
        widest = axis;
      }
    }
    const std::size_t middle = begin + groups / 2 * batch;
    const auto at = [&](std::size_t i) { return order_.begin() + static_cast<std::ptrdiff_t>(i); };
    std::nth_element(at(begin), at(middle), at(end), [&](std::int64_t a, std::int64_t b) {
      return std::pair(value(a, widest), a) < std::pair(value(b, widest), b);
    });
    halve(values, begin, middle);
    halve(values, middle, end);
  }

  GroupOptions options_;
  std::size_t width_ = 1;
  std::vector<std::int64_t> order_;
};

class Bucketed final : public Sampler {
 public:
  Bucketed(std::span<const std::int64_t> lengths, const BucketedOptions& options)
      : size_(static_cast<std::int64_t>(lengths.size())),
        options_{options.batch, options.seed},
        orders_([lengths = std::vector<std::int64_t>(lengths.begin(), lengths.end()), options](std::int64_t epoch) {
          const auto size = static_cast<std::int64_t>(lengths.size());
          const Permutation shuffle(size, options.seed, epoch, kBefore);
          std::vector<std::int64_t> order;
          for (std::int64_t i = 0; i < size; ++i) order.push_back(shuffle.at(i));
          const std::int64_t pool = options.batch * options.pool;
          for (std::int64_t begin = 0; begin < size; begin += pool)
            std::stable_sort(order.begin() + begin, order.begin() + std::min(begin + pool, size),
                             [&](std::int64_t a, std::int64_t b) {
                               return lengths[static_cast<std::size_t>(a)] < lengths[static_cast<std::size_t>(b)];
                             });
          return order;
        }) {
    check_batch("bucketed", options.batch);
    if (options.pool < 1)
      throw ArgumentError("bucketed: pool must be 1 batch or more, got " + std::to_string(options.pool));
    for (const std::int64_t length : lengths)
      if (length < 0) throw ArgumentError("bucketed: lengths must be 0 or more, got " + std::to_string(length));
  }
  std::int64_t size() const override { return size_; }
  std::int64_t at(std::int64_t epoch, std::int64_t position) const override {
    return (*orders_.at(epoch))[static_cast<std::size_t>(shuffled_place(size_, options_, epoch, position))];
  }

 private:
  std::int64_t size_;
  GroupOptions options_;
  detail::EpochLayouts<std::vector<std::int64_t>> orders_;
};

}  // namespace

SamplerPtr proximity(const HostArray& features, const GroupOptions& options) {
  return std::make_shared<Proximity>(features, options);
}
SamplerPtr bucketed(std::span<const std::int64_t> lengths, const BucketedOptions& options) {
  return std::make_shared<Bucketed>(lengths, options);
}

}  // namespace samebytes::data
