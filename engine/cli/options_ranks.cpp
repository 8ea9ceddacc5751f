// Options of train in several processes: mpirun -n N samebytes train ... (ranks.h).
#include "cli/option_groups.h"

namespace samebytes::cli {

void add_ranks(CLI::App& app, Options& options) {
  app.add_option("--rank-timeout", options.ranks.timeout,
                 "under mpirun: a process that is silent for so long is gone, and the others end; default: 10")
      ->option_text("SECONDS")
      ->check(CLI::Range(2.0, 86400.0));
  app.add_flag("--shard-state", options.ranks.shard_state,
               "under mpirun: each process keeps and updates its share of the optimizer's state alone\n"
               "(ZeRO, stage 1)");
}

}  // namespace samebytes::cli
