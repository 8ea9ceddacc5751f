#include "core/forks.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "samebytes/error.h"

namespace samebytes::detail {
namespace {

std::atomic<unsigned> forks{0};
const int is_told = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

unsigned fork_count() { return forks.load(std::memory_order_relaxed); }

ProcessMark::ProcessMark() : forks_(fork_count()), process_(getpid()) { static_cast<void>(is_told); }

void ProcessMark::check(const char* op, const char* what) const {
  if (is_here()) return;
  throw Error(std::string(op) + ": " + what + " in process " + std::to_string(process_) + ", before fork(); process " +
              std::to_string(getpid()) +
              " has none of its threads and would wait for ever. Fork before the first engine is made, or start a "
              "program of its own (exec) in the child");
}

}  // namespace samebytes::detail
