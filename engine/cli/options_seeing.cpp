// Options of train that say what is looked at beside the loss.
#include "cli/option_groups.h"

namespace samebytes::cli {

void add_seeing(CLI::App& app, Options& options) {
  app.add_option("--log-grad-norm", options.seeing.grad_norm,
                 "the norm of all gradients, before clipping, in the log every N updates; 0: never; default: 1\n"
                 "where --clip-norm computes it anyway and there is no --memory-limit, else 0: it costs a pass")
      ->option_text("N")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
}

}  // namespace samebytes::cli
