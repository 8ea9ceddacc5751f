#include "cli/option_groups.h"
#include "cli/option_verbs.h"

namespace samebytes::cli {

void add_memory_snapshot(CLI::App& app, Options& options) {
  app.add_option("--memory-snapshot", options.memory.snapshot,
                 "write what memory is used for; `samebytes memory FILE` draws it")
      ->option_text("FILE.json");
}

CLI::App* add_memory(CLI::App& app, Options& options) {
  auto* verb = app.add_subcommand("memory", "draw a memory snapshot: categories, timeline, layers, the op at the peak");
  verb->add_option("file", options.memory.file, "what --memory-snapshot of train, bench or profile wrote")
      ->option_text("FILE")
      ->required();
  auto* diff =
      verb->add_option("--diff", options.memory.snapshot, "a later snapshot: what grew and what shrank from FILE to it")
          ->option_text("LATER");
  verb->add_option("--svg", options.memory.svg, "the timeline and the arena as a picture, for any browser")
      ->option_text("OUT.svg")
      ->excludes(diff);
  verb->add_option("--top", options.memory.top, "lines of a list, the rest is one more; default: 10")
      ->option_text("N")
      ->check(CLI::Range(0, 1 << 30));
  verb->add_flag("--json", options.json, "categories, peak and layers as one line of JSON; with --diff, what changed");
  verb->footer(
      "Examples:\n  samebytes bench gpt --mode train --steps 3 --memory-snapshot gpt.json\n"
      "  samebytes memory gpt.json --svg gpt.svg\n"
      "  samebytes memory after_20_steps.json --diff after_200_steps.json");
  return verb;
}

}  // namespace samebytes::cli
