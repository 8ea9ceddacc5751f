#include "cli/interrupt.h"

#include <csignal>

namespace samebytes::cli {
namespace {

volatile std::sig_atomic_t g_interrupted = 0, g_terminated = 0;

extern "C" void on_signal(int signal) {
  g_interrupted = 1;
  g_terminated = signal == SIGTERM;
}

}  // namespace

void watch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  // The second signal finds the default action again; system calls of worker threads go on.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool is_interrupted() { return g_interrupted != 0; }
bool is_terminated() { return g_terminated != 0; }

}  // namespace samebytes::cli
