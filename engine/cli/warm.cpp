#include <fmt/format.h>

#include <chrono>

#include "cli/bench_run.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"

namespace samebytes::cli {

int run_warm(const Options& options) {
  Progress progress(stream_for_people(options), options.quiet);
  for (const Workload& workload : chosen_workloads(options))
    for (const bool is_training : {true, false}) {
      if (is_interrupted()) break;
      if (options.mode == (is_training ? "infer" : "train")) continue;
      const auto start = std::chrono::steady_clock::now();
      const std::string title = fmt::format("{} {}", workload.name, is_training ? "train" : "infer");
      const std::unique_ptr<Engine> engine = open_engine(options, options.device);
      const WaitEnds ends(progress);  // before the engine does
      progress.wait_for(title + ": making data and model");
      BenchRun run(options, *engine, workload, is_training);
      progress.wait_for(title + ": compiling kernels", compiled_on(*engine));
      run.run(1);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      progress.erase();
      if (!options.quiet) fmt::print(stream_for_people(options), "{}: ready after {}\n", title, duration_text(seconds));
    }
  return is_interrupted() ? kInterrupted : kDone;
}

}  // namespace samebytes::cli
