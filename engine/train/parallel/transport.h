// Transport: how the gradients of a batch that is shared out come together. devices.h is the one in the memory of an
// engine's devices, ranks.h the one between processes. What only one of them has is nothing in the other.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/train/parallel/data_parallel.h"

namespace samebytes::train::parallel {

using LossOf = DataParallel::LossOf;
using ResultsOf = DataParallel::ResultsOf;
using ShareResults = DataParallel::ShareResults;
using Share = DataParallel::Share;

// A part of an update, whose arguments have been checked. It lives for one call.
struct Work {
  optim::Optimizer& optimizer;
  Share share;
  const LossOf& loss_of;
  optim::GradScaler* scaler;  // null: there is none
  Array scaled(const Array& loss) const { return scaler != nullptr ? scaler->scale(loss) : loss; }
};

class Transport {
 public:
  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual Array step(const Work& work) = 0;
  virtual Array add(const Work& work) = 0;
  virtual void update(optim::Optimizer& optimizer, optim::GradScaler* scaler) = 0;
  virtual std::int64_t added() const = 0;
  virtual std::int64_t steps() const = 0;
  virtual std::vector<ShareResults> map(std::int64_t samples, const ResultsOf& results_of) {
    return {{0, samples, results_of(0, samples)}};
  }
  virtual std::vector<Array> flat_gradients(optim::Optimizer& optimizer, const Array& loss, const Share& /*share*/) {
    return optimizer.flat_gradients(loss);
  }
  virtual double global_samples() const = 0;
  virtual std::optional<double> mean_loss() const { return {}; }

  // Of devices.
  virtual void measure_shares(const Work& /*work*/) {}
  virtual bool has_shares() const { return true; }
  virtual std::vector<std::int64_t> shares(std::int64_t samples) const { return {samples}; }
  virtual std::string to_text(std::int64_t samples) const { return std::to_string(samples) + " samples"; }
  virtual std::int64_t largest_batch() const { return 0; }
  virtual const std::vector<std::int64_t>& samples() const { return no_samples_; }
  virtual const std::vector<DeviceEvent>& events() const { return no_events_; }
  virtual void set_listener(const std::function<void(const DeviceEvent&)>& /*listener*/) {}
  virtual std::string state() const { return {}; }
  virtual void load_state(const std::string& /*text*/) {}

  // Of ranks.
  virtual void ask_to_stop() { stops_ = true; }
  virtual bool is_asked_to_stop() const { return stops_; }
  virtual ExchangeStats stats() const { return {}; }

 protected:
  bool stops_ = false;  // this process wants the training to end

 private:
  std::vector<std::int64_t> no_samples_;
  std::vector<DeviceEvent> no_events_;
};

}  // namespace samebytes::train::parallel
