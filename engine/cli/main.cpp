// samebytes: the command. Parses, runs one verb, and turns every exception into one line and a status.
#include <fmt/format.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <fcntl.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>

#include "cli/interrupt.h"
#include "cli/option_table.h"
#include "cli/parallel.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/device.h"
#include "samebytes/engine.h"
#include "samebytes/error.h"
#include "workloads/workload.h"

namespace {

using namespace samebytes::cli;

int complain(const std::string& message, int status) {
  std::fflush(stdout);
  fmt::print(stderr, "samebytes: {}\n", message);
  return status;
}

// A file must not get the number of a standard stream that was closed: what is printed would go into it.
void keep_standard_streams() {
  for (int stream = 0; stream < 3; ++stream)
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) != stream) std::exit(kFailed);
}

// Results that did not reach standard output are no success.
int after_output(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  const std::string why = std::strerror(errno);
  return status == kDone ? complain("standard output: " + why, kFailed) : status;
}

// A run that overcame a failed call says so, also where it is quiet.
void say_recoveries() {
  samebytes::set_log_sink([](std::string_view, std::string_view message) {
    if (message.rfind("recovered: ", 0) == 0) fmt::print(stderr, "samebytes: {}\n", message);
  });
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
  if (argc == 2 && std::string_view(argv[1]) == "--compile-kernels") {
    std::signal(SIGINT, SIG_IGN);                    // Ctrl-C is for the process that asked; its end ends this one
    std::_Exit(samebytes::serve_kernel_compiler());  // whoever asked does not wait for the driver's farewell
  }
  keep_standard_streams();
  keep_large_blocks_apart();
  try {
    const Parsed parsed = parse_options(argc, argv);
    if (!parsed.options) {
      fmt::print(parsed.status == kDone ? stdout : stderr, "{}", parsed.text);
      return after_output(parsed.status);
    }
    if (!parsed.note.empty() && !parsed.options->quiet) fmt::print(stderr, "samebytes: {}\n", parsed.note);
    if (samebytes::distributed::launched_processes() > 1 && parsed.options->verb != Verb::train)
      throw UsageError("mpirun started several processes, and only train works in several; start this one without it");
    check_outputs(*parsed.options);
    // Before the first OpenCL call and the first thread.
    samebytes::pin_threads(parsed.options->threads > 0 ? parsed.options->threads : threads_of_rank());
    watch_interrupts();
    say_recoveries();
    return after_output(row_of(parsed.options->verb).run(*parsed.options));
  } catch (const UsageError& error) {
    return complain(error.what(), kWrongUsage);
  } catch (const samebytes::workloads::OptionError& error) {
    return complain(error.what(), kWrongUsage);
  } catch (const samebytes::BuildError& error) {
    return complain(fmt::format("{}\n{}", error.what(), error.log()), kFailed);
  } catch (const samebytes::DeviceError& error) {
    std::_Exit(complain(error.what(), kFailed));  // its driver may still compile or run, and must find its own memory
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) return complain(error.what(), kFailed);
    return complain(fmt::format("a thread cannot be started: {}", error.what()), kFailed);
  } catch (const std::exception& error) {
    return complain(error.what(), kFailed);
  }
}
