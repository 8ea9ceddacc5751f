// Options of train and bench on several devices (shares.h).
#include "cli/option_groups.h"

namespace samebytes::cli {

void add_shares(CLI::App& app, Options& options) {
  ShareOptions& shares = options.shares;
  app.add_option("--shares", shares.shares,
                 "of each device of several in a batch, in any unit: 3,1; default: as fast as each was measured\n"
                 "beside the others before the first step, equal where they are alike; fixed for the run")
      ->option_text("N,N,...")
      ->delimiter(',')
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--rebalance", shares.rebalance,
               "shares follow the times of the steps while it runs, so that it does not repeat bit for bit");
  app.add_flag("--sync-batch-norm", shares.sync_batch_norm,
               "batch norm takes its statistics of all shares together, under mpirun of all processes;\n"
               "default: of each");
  app.add_option("--device-timeout", shares.timeout,
                 "a device that does not answer for so long, and for 20 steps, is given up; default: 10")
      ->option_text("SECONDS")
      ->check(CLI::PositiveNumber);
}

}  // namespace samebytes::cli
