// Options of train about its loader (loading.h), beside --workers and --slots.
#include "cli/option_groups.h"

namespace samebytes::cli {

void add_loading(CLI::App& app, Options& options) {
  app.add_option("--max-slots", options.loading.most_slots,
                 "up to so many batches in memory while the loop waits for them and more of them would help, in\n"
                 "256 MB; the results stay the same; default: 8 without --slots and --memory-limit, else --slots")
      ->option_text("N")
      ->check(CLI::Range(1, 1024));
  app.add_option("--loader-cores", options.loading.cores,
                 "efficiency, performance, all, or a list such as 0,2-3: where the loader's workers run, and how\n"
                 "many there are without --workers; one class of cores: all; default: all")
      ->option_text("WHICH");
}

}  // namespace samebytes::cli
