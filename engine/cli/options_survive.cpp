// Options of train for runs that survive (survive.h).
#include <algorithm>

#include "cli/option_groups.h"

namespace samebytes::cli {
namespace {

std::string explain_every(const std::string& text) {
  const bool is_number = !text.empty() && text.size() < 16 && text[0] != '0' &&
                         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_number || text == "epoch" ? std::string() : "needs epoch or a number of steps, " + text + " came";
}

}  // namespace

void add_survival(CLI::App& app, Options& options) {
  SurviveOptions& survive = options.survive;
  app.add_option("--checkpoint", survive.folder,
                 "keep the whole state of the run in this folder: it goes on from there bit for bit, also after\n"
                 "kill -9 and in the middle of an epoch; Ctrl-C writes it once more")
      ->option_text("DIR");
  app.add_option("--checkpoint-every", survive.every, "epoch: after each test; N: after every N steps; default: epoch")
      ->option_text("N|epoch")
      ->check(CLI::Validator(explain_every, ""));
  app.add_option("--keep", survive.keep, "checkpoints in the folder, the oldest is removed; 0: all; default: 3")
      ->option_text("N")
      ->check(CLI::Range(0, 1 << 30));
  app.add_option("--resume", survive.resume,
                 "auto: go on from the newest whole checkpoint in the folder, or begin where there is none;\n"
                 "FILE: go on from this one")
      ->option_text("auto|FILE");
  app.add_option("--on-device-error", survive.on_device_error,
                 "stop; retry: go on from the last checkpoint on the same device, at most 3 times; cpu: go on on\n"
                 "the CPU; without --checkpoint the state is kept in memory; default: stop")
      ->option_text("WHAT")
      ->check(CLI::IsMember({"stop", "retry", "cpu"}));
}

}  // namespace samebytes::cli
