// Ranks: the transport between the processes of a group. Each builds the gradients of its own samples; they are sent in
// buckets while the backward pass goes on (exchange.h), and what the optimizer takes is their mean.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "samebytes/optim/accumulator.h"
#include "train/parallel/exchange.h"
#include "train/parallel/transport.h"

namespace samebytes::train::parallel {

class Ranks final : public Transport {
 public:
  Ranks(distributed::Group& group, nn::Module& net, optim::Optimizer& optimizer, const DataParallelOptions& options);
  ~Ranks() override;

  Array step(const Work& work) override;
  Array add(const Work& work) override;
  void update(optim::Optimizer& optimizer, optim::GradScaler* scaler) override;
  std::int64_t added() const override;
  std::int64_t steps() const override { return steps_; }
  std::vector<Array> flat_gradients(optim::Optimizer& optimizer, const Array& loss, const Share& share) override;
  double global_samples() const override { return is_alone() ? last_samples_ : exchange_->samples(); }
  std::optional<double> mean_loss() const override;
  bool is_asked_to_stop() const override { return is_alone() ? stops_ : exchange_->stops(); }
  ExchangeStats stats() const override;

 private:
  bool is_alone() const { return group_.size() == 1; }
  void require_same(const optim::Optimizer& optimizer) const;
  Array loss_of(const Work& work);
  Array taken(const Work& work);
  void updated(optim::GradScaler* scaler);
  // The group ends where f throws after this rank has told the others of a step.
  template <class F>
  auto of_all(F f) {
    const std::int64_t begun = exchange_->begun();
    try {
      return f();
    } catch (...) {
      if (exchange_->begun() != begun) exchange_->give_up();
      throw;
    }
  }
  void tell();  // the others of the samples and losses of this update
  void end_update();
  std::vector<Array> means_of(const Array& loss, const optim::Optimizer::GradientMap& map);
  std::vector<Array> settled(const std::vector<Array>& means);
  std::vector<Piece> shares_of(std::size_t arena, std::byte* data) const;
  void spread();
  HostArray gather(const Array& cell) const;

  struct Given {
    Array loss;
    Share share;
  };

  distributed::Group& group_;
  optim::Optimizer& optimizer_;
  const bool syncs_norms_;
  std::vector<std::pair<std::size_t, std::int64_t>> places_;  // of each parameter: its arena, and where it begins there
  double bucket_bytes_;
  std::uint64_t signature_;
  std::shared_ptr<Exchange> exchange_;
  std::optional<optim::Accumulator> sums_;
  std::vector<Given> given_;  // since the last update
  Array watched_;             // of the next update; alone, of the last one
  double last_samples_ = 0;
  std::int64_t steps_ = 0;
  std::uint64_t bytes_spread_ = 0;
  double spread_seconds_ = 0;
};

}  // namespace samebytes::train::parallel
