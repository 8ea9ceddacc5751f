#include "cli/option_verbs.h"

namespace samebytes::cli {

CLI::App* add_doctor(CLI::App& app, Options& options) {
  auto* verb = app.add_subcommand("doctor", "read the log of a run and say what to do about its troubles");
  verb->add_option("run", options.doctor.run, "what `train --log FILE.jsonl` wrote, also of a run that failed")
      ->option_text("RUN.jsonl")
      ->required();
  verb->add_option("profile", options.doctor.profile, "what `profile WORKLOAD --json` printed, for advice on speed")
      ->option_text("[PROFILE.json]");
  verb->add_flag("--json", options.json, "the findings as one line of JSON");
  verb->footer(
      "Findings come ranked: what failed, what is serious, what could be better; each with the figure that was\n"
      "seen and its line, why it matters, and what to do as options of this program, the first one first.\n"
      "\nExample:\n"
      "  samebytes train digits --rate 1e4 --log run.jsonl\n"
      "  samebytes profile digits --json > profile.json\n"
      "  samebytes doctor run.jsonl profile.json\n"
      "\nStatus: 0 with findings or without, 2 for files that are no log or no profile.");
  return verb;
}

}  // namespace samebytes::cli
