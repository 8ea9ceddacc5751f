// SharedSteps: a batch cut in shares over the devices of an engine that has several (train/parallel), for train and
// bench. With one device there is none, and everything is as it was.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/session.h"
#include "cli/summary.h"
#include "samebytes/data.h"
#include "samebytes/run_state.h"
#include "samebytes/train/parallel/strategy.h"
#include "samebytes/train/run_log.h"

namespace samebytes::cli {

class SharedSteps final : public train::Strategy {
 public:
  // Null where the engine has one device. Throws UsageError for options that need one, or several.
  static std::unique_ptr<SharedSteps> make(const Options& options, Engine& engine, nn::Module& net,
                                           bool is_training = true);

  // Before the first step of a run that does not go on; takes a batch where shares are to be measured.
  void find(optim::Optimizer& optimizer, train::Precision& precision, data::Loader& loader, std::int64_t batch,
            const train::LossOf& loss_of);
  train::DataParallel& parallel() override { return parallel_; }

  // What happens to a device, for people and for the log.
  void report(std::function<void(const std::string&)> say, train::RunLog& log);
  std::string text() const;  // "shares: 32 + 32 of 64 samples on cpu:0.0, cpu:0.1"
  void add_to(nlohmann::ordered_json& start_line) const;
  void add_to(RunState& state) override;
  void fill(Summary& summary) const;

 private:
  SharedSteps(const Options& options, Engine& engine, nn::Module& net);
  std::string devices() const;
  std::int64_t batch() const { return std::max(batch_, parallel_.largest_batch()); }

  Engine& engine_;
  std::int64_t batch_ = 0;  // that a run is to have
  std::string asked_;       // --shares
  train::DataParallel parallel_;
};

}  // namespace samebytes::cli
