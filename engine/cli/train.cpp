// samebytes train: trains a workload, tests it after every epoch, and says what it came to.
#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/limit.h"
#include "cli/lora.h"
#include "cli/trainer.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"

namespace samebytes::cli {
namespace {

// Once, or again after a device error, as --on-device-error says.
Summary train_fold(Options options, const Workload& workload, const std::shared_ptr<train::RunLog>& log, Keeper& keeper,
                   Ranks& ranks) {
  for (;;) {
    try {
      return Trainer(options, workload, log, keeper, keeper.folds().fold, ranks).run();
    } catch (const distributed::DistributedError& error) {
      throw distributed::DistributedError(error.what() + keeper.last_resort());
    } catch (const DeviceError& error) {
      const std::string before = options.device;
      if (!keeper.goes_on_after(error, options.device))
        throw DeviceError(error.what() + keeper.last_resort(), error.call(), error.status(), error.device());
      if (options.device != before) options.devices = {};  // of the device that was left
    }
  }
}

std::string line_of(const std::exception& error) {
  if (dynamic_cast<const UsageError*>(&error) == nullptr) return train::error_line(error);
  return Json{{"event", "error"}, {"kind", "UsageError"}, {"message", error.what()}}.dump();
}

}  // namespace

Rehearsal rehearse_train(const Options& options, const Workload& workload) {
  const auto log = std::make_shared<train::RunLog>("");
  Keeper keeper(options, *log);
  Ranks alone;
  Trainer trainer(options, workload, log, keeper, 0, alone);
  trainer.run();
  return trainer.rehearsed();
}

int run_train(const Options& all) {
  Ranks ranks(all);
  const Options asked = ranks.own(all);
  const Workload workload = with_data_kept(make_workload(asked.workloads.front(), asked.form));
  const Fitted fitted = fit_train(asked, workload);
  const Options& options = fitted.options;
  check_lora(options);
  if (workload.folds > 1 && !(options.save.empty() && options.lora.save.empty()))
    throw UsageError("--save keeps one network, and this data is trained in several folds");
  check_survival(options);
  const auto log = std::make_shared<train::RunLog>(options.log, options.tensorboard, !options.survive.resume.empty());
  if (!fitted.text.empty()) {
    if (!options.quiet) fmt::print(stream_for_people(options), "{}\n", fitted.text);
    log->write(fitted.to_json().dump());
  }
  Summary summary;
  Keeper keeper(options, *log);
  if (workload.folds > 1) keeper.find_fold();
  while (keeper.folds().fold < workload.folds && !ranks.agree_to_stop()) {
    try {
      summary = train_fold(options, workload, log, keeper, ranks);
    } catch (const std::exception& error) {
      log->write(line_of(error));
      throw;
    }
    if (!is_interrupted()) keeper.end_fold(summary);
  }
  if (workload.folds > 1) summary.fold_areas = keeper.folds().areas;
  fitted.fill(summary);
  nlohmann::ordered_json line = to_json(summary);
  line["event"] = "summary";
  line["interrupted"] = is_interrupted();
  log->write(line.dump());
  if (ranks.rank() == 0) print_summary(options, summary, is_interrupted());
  return is_interrupted() ? kInterrupted : kDone;
}

}  // namespace samebytes::cli
