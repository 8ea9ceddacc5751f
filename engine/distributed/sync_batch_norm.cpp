// Batch norm over the samples of all ranks. Each rank makes mean and variance of its own rows; a host function gathers
// those of all, and every rank makes the same moments of them, in the order of the ranks (T. Chan et al., "Updating
// formulae and a pairwise algorithm for computing sample variances", 1979). Backward it gathers what flows to them.
//
// With n_r rows on rank r of n, c = sum n_r/n m_r and v = sum n_r/n (v_r + (m_r - c)^2). A rank's gradient is that of
// the mean over its own rows, weighted by n_r/n where the ranks' become one. So what flows to c and v is the mean over
// the ranks, weighted alike, of what flows to them on each: G_c, G_v; to m_r flows G_c + 2 (m_r - c) G_v, to v_r G_v.
#include "distributed/sync_batch_norm.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "distributed/jobs.h"
#include "graph/launch.h"
#include "graph/op.h"
#include "samebytes/autograd.h"
#include "samebytes/distributed.h"
#include "samebytes/ops.h"
#include "samebytes/statistics.h"

namespace samebytes::distributed {
namespace detail {
namespace {

using samebytes::detail::GradientRequest;
using samebytes::detail::Hasher;
using samebytes::detail::InputSet;
using samebytes::detail::Launch;
using samebytes::detail::make_arrays;
using samebytes::detail::make_op;
using samebytes::detail::Op;
using samebytes::detail::Operand;
using samebytes::detail::OpTraits;
using samebytes::detail::Result;

using Pointers = std::function<void*(Operand)>;

// Two numbers for each channel, of this rank or of all.
struct PerChannel {
  std::vector<double> first, second;
};

// What the ranks have of the same channels: how many rows each, and their numbers.
class OfAllRanks {
 public:
  OfAllRanks(const std::weak_ptr<Communicator>& group, double rows, const PerChannel& own)
      : channels_(own.first.size()) {
    const auto communicator = group.lock();
    if (!communicator) throw ArgumentError("SyncBatchNorm: this graph was built for a Group that is gone");
    const std::size_t width = 1 + 2 * channels_;
    std::vector<double> mine{rows};
    mine.insert(mine.end(), own.first.begin(), own.first.end());
    mine.insert(mine.end(), own.second.begin(), own.second.end());
    all_.resize(width * static_cast<std::size_t>(communicator->size()));
    std::vector<Piece> places;
    const auto piece = [&](double* begin) {
      return Piece{reinterpret_cast<std::byte*>(begin), width * sizeof(double)};
    };
    for (std::size_t at = 0; at < all_.size(); at += width) places.push_back(piece(&all_[at]));
    communicator->run(std::make_shared<Gather>(*communicator, piece(mine.data()), std::move(places)));
    for (std::size_t at = 0; at < all_.size(); at += width) rows_ += all_[at];
    if (!(rows_ > 0)) throw DistributedError("distributed: no rank has a sample of a batch that a batch norm sees");
  }

  double rows() const { return rows_; }
  // of(weight, first, second) of each rank that has rows, added up.
  template <class Of>
  double sum(std::size_t channel, Of of) const {
    double total = 0;
    const std::size_t width = 1 + 2 * channels_;
    for (std::size_t at = 0; at < all_.size(); at += width) {
      if (all_[at] == 0) continue;  // it may have NaN
      total += of(all_[at] / rows_, all_[at + 1 + channel], all_[at + 1 + channels_ + channel]);
    }
    return total;
  }

 private:
  std::size_t channels_;
  std::vector<double> all_;  // of each rank: rows, the first numbers, the second ones
  double rows_ = 0;
};

template <class T>
std::vector<double> read_as(const void* from, std::int64_t size) {
  const T* const values = static_cast<const T*>(from);
  return {values, values + size};
}
std::vector<double> read(const void* from, std::int64_t size, Dtype dtype) {
  return dtype == f64 ? read_as<double>(from, size) : read_as<float>(from, size);
}

void write(const std::vector<double>& values, void* to, Dtype dtype) {
  if (dtype == f64) {
    std::copy(values.begin(), values.end(), static_cast<double*>(to));
    return;
  }
  std::transform(values.begin(), values.end(), static_cast<float*>(to), [](double v) { return static_cast<float>(v); });
}

class OverRanks : public Op {
 public:
  OverRanks(std::weak_ptr<Communicator> group, std::uint64_t id, double rows, OpTraits traits = {})
      : Op(std::move(traits)), group_(std::move(group)), id_(id), rows_(rows) {}
  void hash(Hasher& hasher) const override {
    hasher.add(id_);
    hasher.add(rows_);
  }

 protected:
  std::weak_ptr<Communicator> group_;
  std::uint64_t id_;  // of the group
  double rows_;       // that count
};

// Inputs: two arrays [C]. Results: their means over all ranks, each weighted by its rows.
class RankMeans final : public OverRanks {
 public:
  using OverRanks::OverRanks;
  std::string_view name() const override { return "sync_batch_norm_gradient"; }

  void launch(Launch& run) const override {
    run.host_call(
        std::string(name()), {run.src(0), run.src(1)}, {run.dst(0), run.dst(1)},
        [group = group_, rows = rows_, from = std::pair{run.src(0), run.src(1)}, to = std::pair{run.dst(0), run.dst(1)},
         size = run.dst_shape().size(), dtype = run.dst_dtype()](const Pointers& pointer) {
          PerChannel own;
          own.first = read(pointer(from.first), size, dtype);
          own.second = read(pointer(from.second), size, dtype);
          const OfAllRanks all(group, rows, own);
          for (std::size_t c = 0; c < own.first.size(); ++c) {
            own.first[c] = all.sum(c, [](double weight, double first, double) { return weight * first; });
            own.second[c] = all.sum(c, [](double weight, double, double second) { return weight * second; });
          }
          write(own.first, pointer(to.first), dtype);
          write(own.second, pointer(to.second), dtype);
        },
        true);
  }
};

// Inputs: mean and variance [C] of this rank's rows and, where they are updated, the cells of running mean and
// variance. Results: mean and variance over all ranks, and those cells.
class RankMoments final : public OverRanks {
 public:
  RankMoments(const std::shared_ptr<Communicator>& group, double rows, std::optional<double> momentum)
      : OverRanks(group, group->id(), rows, {.is_state = InputSet::from(2), .in_place = {.result = 2, .input = 2}}),
        momentum_(momentum) {}
  std::string_view name() const override { return "sync_batch_norm"; }
  void hash(Hasher& hasher) const override {
    OverRanks::hash(hasher);
    hasher.add(std::uint64_t{momentum_.has_value()});
    hasher.add(momentum_.value_or(0));
  }

  void launch(Launch& run) const override {
    std::vector<Operand> from{run.src(0), run.src(1)}, to{run.dst(0), run.dst(1)};
    for (const int k : {2, 3}) {
      if (!momentum_) continue;
      from.push_back(run.src(k));
      to.push_back(run.dst(k));
    }
    run.host_call(
        std::string(name()), from, to,
        [group = group_, rows = rows_, momentum = momentum_, from, to, size = run.dst_shape().size(),
         dtype = run.dst_dtype()](const Pointers& pointer) {
          PerChannel own;
          own.first = read(pointer(from[0]), size, dtype);
          own.second = read(pointer(from[1]), size, dtype);
          const OfAllRanks all(group, rows, own);
          PerChannel moments = own;
          for (std::size_t c = 0; c < own.first.size(); ++c) {
            const double centre = all.sum(c, [](double weight, double mean, double) { return weight * mean; });
            moments.first[c] = centre;
            moments.second[c] = all.sum(c, [&](double weight, double mean, double variance) {
              return weight * (variance + (mean - centre) * (mean - centre));
            });
          }
          write(moments.first, pointer(to[0]), dtype);
          write(moments.second, pointer(to[1]), dtype);
          if (!momentum) return;
          const double unbiased = all.rows() / std::max(1.0, all.rows() - 1);
          const auto follow = [&](const std::vector<double>& now, double factor, std::size_t place) {
            std::vector<double> values = read(pointer(from[place]), size, dtype);
            for (std::size_t c = 0; c < values.size(); ++c)
              values[c] = values[c] * (1 - *momentum) + now[c] * factor * *momentum;
            write(values, pointer(to[place]), dtype);
          };
          follow(moments.first, 1, 2);
          follow(moments.second, unbiased, 3);
        },
        true);
  }

  std::vector<Array> gradient(const GradientRequest& request) const override {
    const Array &mean = request.src[0], &centre = request.dst[0];
    const auto flow = [&](std::size_t k) {
      return request.dy[k].defined() ? request.dy[k] : zeros(mean.shape(), mean.dtype());
    };
    const Array to_centre = flow(0), to_variance = flow(1);
    const Result results[] = {{mean.shape(), mean.dtype()}, {mean.shape(), mean.dtype()}};
    const Array inputs[] = {to_centre, to_variance};
    const std::vector<Array> all = make_arrays(make_op<RankMeans>(group_, id_, rows_), results, inputs);
    std::vector<Array> result(request.src.size());
    result[0] = all[0] + (mean - centre) * 2.0 * all[1];
    result[1] = all[1];
    return result;
  }

 private:
  std::optional<double> momentum_;
};

}  // namespace

Array normalised(const std::shared_ptr<Communicator>& group, bool counts, const BatchNormCall& call) {
  const Shape shape = call.src.shape();
  const std::int64_t channels = shape.back(), rows = channels == 0 ? 0 : shape.size() / channels;
  const Dtype real = call.scale.dtype();
  const Array x = reshape(astype(call.src, real), {rows, channels});
  const Array own_mean = mean(x, {0}), from_mean = x - own_mean, own_variance = mean(from_mean * from_mean, {0});
  const bool updates = is_grad_enabled();
  std::vector<Array> inputs{own_mean, own_variance};
  if (updates) inputs.insert(inputs.end(), {call.running_mean, call.running_var});
  const std::vector<Result> results(inputs.size(), {call.scale.shape(), real});
  const auto momentum = updates ? std::optional(double{call.options.momentum}) : std::nullopt;
  const std::vector<Array> moments =
      make_arrays(make_op<RankMoments>(group, counts ? static_cast<double>(rows) : 0.0, momentum), results, inputs);
  const Array factor = rsqrt(moments[1] + static_cast<double>(call.options.eps)) * call.scale;
  return astype(reshape((x - moments[0]) * factor + call.shift, shape), call.src.dtype());
}

}  // namespace detail

struct SyncBatchNorm::Impl {
  std::optional<BatchNormScope> scope;
};

SyncBatchNorm::SyncBatchNorm(Group& group, bool counts) : impl_(std::make_unique<Impl>()) {
  if (group.size() == 1) return;
  impl_->scope.emplace([communicator = group.communicator(), counts](const BatchNormCall& call) {
    return detail::normalised(communicator, counts, call);
  });
}

SyncBatchNorm::~SyncBatchNorm() = default;

}  // namespace samebytes::distributed
