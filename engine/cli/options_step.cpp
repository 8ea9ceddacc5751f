// Options of train, bench and profile that say what a step keeps and how it is cut:
// include/samebytes/train/accumulation.h, samebytes/checkpoint.h.
#include "cli/option_groups.h"
#include "samebytes/checkpoint.h"
#include "samebytes/error.h"

namespace samebytes::cli {
namespace {

std::string check_checkpointing(const std::string& text) {
  try {
    static_cast<void>(Checkpointing::parse(text));
    return {};
  } catch (const ArgumentError&) {
    return "needs off, block, sqrt or a number of blocks above 0, " + text + " came";
  }
}

}  // namespace

void add_checkpointing(CLI::App& app, Options& options) {
  app.add_option("--gradient-checkpointing", options.step.checkpointing,
                 "block, sqrt or a number of blocks: keep only what enters each block, each stretch of the\n"
                 "square root of their number, or of K of them; the rest is computed anew; default: off")
      ->option_text("K")
      ->check(CLI::Validator(check_checkpointing, ""));
  app.add_option("--recompute", options.limit.recompute,
                 "of a step's cost, what the plan may spend on computing pointwise values again instead of\n"
                 "keeping them; 0: only where it costs nothing; the bytes are the same; default: 0.05")
      ->option_text("SHARE")
      ->check(CLI::Range(0.0, 10.0));
}

void add_accumulation(CLI::App& app, Options& options) {
  app.add_option("--accumulate", options.step.accumulate,
                 "batches whose gradients make one update, the last ones of an epoch too; default: 1")
      ->option_text("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  app.add_option("--micro-batch", options.step.micro_batch,
                 "evaluate a batch in pieces of N samples, which needs the memory of one piece; the update is\n"
                 "that of the whole batch, but for batch norms, which see pieces")
      ->option_text("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
}

}  // namespace samebytes::cli
