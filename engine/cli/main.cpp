// samebytes: the command. Parses, runs one verb, and turns every exception into one line and a status.
#include <fmt/format.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <cstdio>
#include <exception>
#include <string>

#include "cli/interrupt.h"
#include "cli/option_table.h"
#include "cli/parallel.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/device.h"
#include "samebytes/error.h"
#include "workloads/workload.h"

namespace {

using namespace samebytes::cli;

int complain(const std::string& message, int status) {
  std::fflush(stdout);
  fmt::print(stderr, "samebytes: {}\n", message);
  return status;
}

// What a driver's compiler reads at once lies in mappings of its own, so that only the pages it fills count and they go
// back when it is done: 4 to 5 MB of resnet20's 110 (docs/decisions/kernel_programs.md). Else the largest block that
// was ever freed says what is large.
void keep_large_blocks_apart() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  keep_large_blocks_apart();
  try {
    const Parsed parsed = parse_options(argc, argv);
    if (!parsed.options) {
      fmt::print(parsed.status == kDone ? stdout : stderr, "{}", parsed.text);
      return parsed.status;
    }
    if (!parsed.note.empty() && !parsed.options->quiet) fmt::print(stderr, "samebytes: {}\n", parsed.note);
    if (samebytes::distributed::launched_processes() > 1 && parsed.options->verb != Verb::train)
      throw UsageError("mpirun started several processes, and only train works in several; start this one without it");
    check_outputs(*parsed.options);
    // Before the first OpenCL call and the first thread.
    samebytes::pin_threads(parsed.options->threads > 0 ? parsed.options->threads : threads_of_rank());
    watch_interrupts();
    return row_of(parsed.options->verb).run(*parsed.options);
  } catch (const UsageError& error) {
    return complain(error.what(), kWrongUsage);
  } catch (const samebytes::workloads::OptionError& error) {
    return complain(error.what(), kWrongUsage);
  } catch (const samebytes::BuildError& error) {
    return complain(fmt::format("{}\n{}", error.what(), error.log()), kFailed);
  } catch (const std::exception& error) {
    return complain(error.what(), kFailed);
  }
}
