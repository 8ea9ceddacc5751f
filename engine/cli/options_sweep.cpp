#include "cli/option_groups.h"
#include "cli/option_verbs.h"

namespace samebytes::cli {

void add_adaptive_batch(CLI::App& app, Options& options) {
  auto* on = app.add_flag("--adaptive-batch", options.adaptive.is_on,
                          "double the batch, from --batch on, whenever the gradient noise scale stays above it; the\n"
                          "rate follows (--scale-rate; default: linear for sgd, sqrt for the others). A step of the\n"
                          "progress and of --steps is then half of --batch");
  app.add_option("--max-batch", options.adaptive.max_batch,
                 "of --adaptive-batch: the largest; default: 32 times --batch, at most an eighth of the set")
      ->option_text("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->needs(on);
}

CLI::App* add_sweep(CLI::App& app, Options& options) {
  auto* verb = app.add_subcommand("sweep", "train a workload with several batch sizes and say which one to take");
  add_workload(*verb, options, false);
  add_data(*verb, options);
  add_form(*verb, options);
  add_tokenizer(*verb, options);
  verb->add_option("--batch", options.sweep.batches, "the sizes, in a comma list; default: 1,8,32,128")
      ->option_text("LIST")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  verb->add_option("--target-loss", options.sweep.target_loss,
                   "test loss whose steps and seconds are counted; default: the lowest that the size nearest to\n"
                   "the workload's own reaches in the first half of its training")
      ->option_text("X");
  auto* steps = add_steps(*verb, options, "of each size, at most; default: as many samples for each, see --epochs");
  verb->add_option("--epochs", options.epochs,
                   "passes over the training set for each size, at most; default: the workload's, up to 60 000\n"
                   "samples")
      ->option_text("N")
      ->check(CLI::Range(1, 1 << 30))
      ->excludes(steps);
  add_recipe(*verb, options);
  add_precision(*verb, options,
                "f16 or bf16: activations and working weights in 16 bits, as train has it; default: f32");
  add_device_options(*verb, options, DeviceWish::one);
  add_loader_options(*verb, options);
  verb->add_option("--plot", options.sweep.plot, "samples/s, steps and seconds to the target, noise scale and memory")
      ->option_text("FILE.svg");
  verb->add_flag("--json", options.json, "the table and the advice as one line of JSON, the last of standard output");
  verb->add_flag("--quiet", options.quiet, "no progress, only the table and the advice");
  verb->footer(
      workload_table() +
      "\nEach size starts from the same seed and parameters. The rate is the workload's for its own batch and\n"
      "follows --scale-rate (default: linear for sgd, sqrt for the others), at most 32 times; the schedule is\n"
      "constant unless --schedule says otherwise. A size ends when it has reached the target.\n"
      "\nExamples:\n"
      "  samebytes sweep digits\n"
      "  samebytes sweep cnn --data data/mnist --batch 1,8,32,128,512 --plot sweep.svg");
  return verb;
}

}  // namespace samebytes::cli
