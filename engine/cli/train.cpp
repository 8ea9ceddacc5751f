// samebytes train: trains a workload, tests it after every epoch, and says what it came to.
#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/limit.h"
#include "cli/step_error.h"
#include "cli/trainer.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"

namespace samebytes::cli {
namespace {

// Once, or again after a device error, as --on-device-error says.
Summary train_fold(Options options, const Workload& workload, StepLog& log, int fold, Ranks& ranks) {
  Keeper keeper(options, log);
  for (;;) {
    try {
      return Trainer(options, workload, log, keeper, fold, ranks).run();
    } catch (const distributed::DistributedError& error) {
      throw distributed::DistributedError(error.what() + keeper.last_resort());
    } catch (const DeviceError& error) {
      if (!keeper.goes_on_after(error, options.device))
        throw DeviceError(error.what() + keeper.last_resort(), error.call(), error.status(), error.device());
    }
  }
}

}  // namespace

Rehearsal rehearse_train(const Options& options, const Workload& workload) {
  StepLog log("");
  Keeper keeper(options, log);
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
  if (options.device == "all") throw UsageError("train uses one device; --device all is for bench");
  if (workload.folds > 1 && !options.save.empty())
    throw UsageError("--save keeps one network, and this data is trained in several folds");
  check_survival(options);
  if (workload.folds > 1 && (!options.survive.folder.empty() || !options.survive.resume.empty()))
    throw UsageError("--checkpoint keeps one run, and this data is trained in several folds");
  StepLog log(options.log, options.tensorboard, !options.survive.resume.empty());
  if (!fitted.text.empty()) {
    if (!options.quiet) fmt::print(stream_for_people(options), "{}\n", fitted.text);
    log.write(fitted.to_json());
  }
  Summary summary;
  std::vector<double> areas;  // under the curve, of each fold
  for (int fold = 0; fold < workload.folds && !is_interrupted(); ++fold) {
    try {
      summary = train_fold(options, workload, log, fold, ranks);
    } catch (const std::exception& error) {
      log.write(error_line(error));
      throw;
    }
    if (summary.test_area_under_curve) areas.push_back(*summary.test_area_under_curve);
  }
  if (workload.folds > 1) summary.fold_areas = areas;
  fitted.fill(summary);
  nlohmann::ordered_json line = to_json(summary);
  line["event"] = "summary";
  line["interrupted"] = is_interrupted();
  log.write(line);
  if (ranks.rank() == 0) print_summary(options, summary, is_interrupted());
  return is_interrupted() ? kInterrupted : kDone;
}

}  // namespace samebytes::cli
