// Moments of the samples of all ranks. A host function gathers those of each, and every rank makes the same ones of
// them, in the order of the ranks (batch_norm.h). Backward it gathers what flows to them.
//
// A rank's gradient is that of the mean over its own rows, weighted by n_r/n where the ranks' become one. So what flows
// to c and v is the mean over the ranks, weighted alike, of what flows to them on each: G_c, G_v; to m_r flows
// G_c + 2 (m_r - c) G_v, to v_r G_v.
#include "train/parallel/rank_batch_norm.h"

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
#include "train/parallel/batch_norm.h"

namespace samebytes::train::parallel {
namespace {

using distributed::DistributedError;
using distributed::detail::Communicator;
using distributed::detail::Gather;
using distributed::detail::Piece;
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
  // A channel's two numbers on each rank that has rows; another one may have NaN.
  std::vector<Moments<double>> of_channel(std::size_t channel) const {
    std::vector<Moments<double>> ranks;
    const std::size_t width = 1 + 2 * channels_;
    for (std::size_t at = 0; at < all_.size(); at += width)
      if (all_[at] != 0) ranks.push_back({all_[at + 1 + channel], all_[at + 1 + channels_ + channel], all_[at]});
    return ranks;
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
            own.first[c] = own.second[c] = 0;
            for (const Moments<double>& rank : all.of_channel(c)) {
              own.first[c] += rank.rows / all.rows() * rank.mean;
              own.second[c] += rank.rows / all.rows() * rank.variance;
            }
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
            const Moments<double> of_all = joint(all.of_channel(c));
            moments.first[c] = of_all.mean;
            moments.second[c] = of_all.variance;
          }
          write(moments.first, pointer(to[0]), dtype);
          write(moments.second, pointer(to[1]), dtype);
          if (!momentum) return;
          const auto follow = [&](const std::vector<double>& now, double factor, std::size_t place) {
            std::vector<double> values = read(pointer(from[place]), size, dtype);
            for (std::size_t c = 0; c < values.size(); ++c) values[c] = followed(values[c], now[c] * factor, *momentum);
            write(values, pointer(to[place]), dtype);
          };
          follow(moments.first, 1, 2);
          follow(moments.second, unbiased(all.rows()), 3);
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

Array rank_batch_norm(const std::shared_ptr<Communicator>& group, bool counts, const BatchNormCall& call) {
  return sync_batch_norm(call, [&](Moments<Array> own) {
    const bool updates = is_grad_enabled();
    std::vector<Array> inputs{own.mean, own.variance};
    if (updates) inputs.insert(inputs.end(), {call.running_mean, call.running_var});
    const std::vector<Result> results(inputs.size(), {call.scale.shape(), call.scale.dtype()});
    const auto momentum = updates ? std::optional(double{call.options.momentum}) : std::nullopt;
    const double rows = counts ? own.rows : 0;
    const std::vector<Array> all = make_arrays(make_op<RankMoments>(group, rows, momentum), results, inputs);
    return Moments<Array>{all[0], all[1], rows};
  });
}

}  // namespace samebytes::train::parallel
