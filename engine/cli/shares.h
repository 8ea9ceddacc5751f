// SharedSteps: a batch cut in shares over the devices of an engine that has several (data_parallel.h), for train and
// bench. With one device there is none, and everything is as it was.
#pragma once

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
#include "samebytes/data_parallel.h"
#include "samebytes/run_state.h"
#include "samebytes/train/run_log.h"
#include "samebytes/train/strategy.h"

namespace samebytes::cli {

class SharedSteps final : public train::DeviceStrategy {
 public:
  // Null where the engine has one device. Throws UsageError for options that need one, or several.
  static std::unique_ptr<SharedSteps> make(const Options& options, Engine& engine, nn::Module& net,
                                           bool is_training = true);

  // Before the first step of a run that does not go on; takes a batch where shares are to be measured.
  void find(optim::Optimizer& optimizer, train::Precision& precision, data::Loader& loader, std::int64_t batch,
            const train::LossOf& loss_of);
  Array step(optim::Optimizer& optimizer, optim::GradScaler* scaler, const data::Batch& batch,
             const train::LossOf& loss_of) override;
  Array add(optim::Optimizer& optimizer, optim::GradScaler* scaler, const data::Batch& piece,
            const train::LossOf& loss_of) override;
  void update(optim::Optimizer& optimizer, optim::GradScaler* scaler) override;
  std::vector<Results> map(const data::Batch& batch, const train::ResultsOf& results_of) override;

  // What happens to a device, for people and for the log.
  void report(std::function<void(const std::string&)> say, train::RunLog& log);
  std::string text() const;  // "shares: 32 + 32 of 64 samples on cpu:0.0, cpu:0.1"
  void add_to(nlohmann::ordered_json& start_line) const;
  void add_to(RunState& state) override;
  void fill(Summary& summary) const;

 private:
  SharedSteps(const Options& options, Engine& engine, nn::Module& net);
  std::string devices() const;
  // Of a share of the batch, while the batch lasts.
  DataParallel::LossOf loss_of_shares(const data::Batch& batch, const train::LossOf& loss_of);

  Engine& engine_;
  std::int64_t batch_ = 0;
  std::string asked_;  // --shares
  DataParallel parallel_;
};

}  // namespace samebytes::cli
