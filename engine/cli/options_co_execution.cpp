// What the host does of a device's work: EngineOptions::host_execution.
#include "cli/option_groups.h"

namespace samebytes::cli {

void add_co_execution(CLI::App& app, Options& options) {
  app.add_option("--host-execution", options.co_execution.host,
                 "automatic, off or always: small launches that the host does over the same bytes, where the\n"
                 "measured costs of the device favour it; results are the same bytes; default: automatic")
      ->option_text("MODE")
      ->check(CLI::IsMember({"automatic", "off", "always"}));
}

}  // namespace samebytes::cli
