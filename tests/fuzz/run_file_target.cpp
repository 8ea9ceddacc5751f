#include "cli/run_file.h"

#include "cli/usage_error.h"
#include "fuzz/target.h"
#include "samebytes/error.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

const Added added({
    .name = "run_file",
    .file = "run.yaml",
    .make =
        [](const std::string& folder) {
          testing::put(folder + "/run",
                       "workload: digits\ntraining: {steps: 12, batch: 32}\noptimizer:\n  rate: 1e-2\n"
                       "  weight_decay: 0.05  # or weight-decay\noutput:\n  json: true\n  quiet: yes\n");
          testing::put(folder + "/list", "workload: [mlp, cnn]\nseed: \"3\"\n");
        },
    .read =
        [](const std::string& path) {
          try {
            cli::expand_run_file(cli::Verb::train, {path});
          } catch (const cli::UsageError& error) {
            throw ArgumentError(error.what());
          }
        },
    .words = {"&a ", "*a", "<<: *a", "!!binary ", "|\n", ">\n", "---\n", "- ", "? ", "workload: ", "batch: ", "~",
              "model:\n  "},
    .growth = 300,
});

}  // namespace
}  // namespace samebytes::fuzz
