#include "cli/interrupt.h"

#include <unistd.h>

#include <csignal>

namespace samebytes::cli {
namespace {

// Whoever sends SIGTERM, or closes the terminal, kills what has not ended in about this time, so a run that hangs in a
// driver loses nothing by it.
constexpr unsigned kMostSecondsToSeeTerm = 30;

volatile std::sig_atomic_t g_interrupted = 0, g_terminated = 0;

extern "C" void on_signal(int signal) {
  g_interrupted = 1;
  g_terminated = signal != SIGINT;
  if (g_terminated != 0) alarm(kMostSecondsToSeeTerm);
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
  struct sigaction of_terminal = {};  // it was closed; nohup has that ignored
  if (sigaction(SIGHUP, nullptr, &of_terminal) == 0 && of_terminal.sa_handler != SIG_IGN)
    sigaction(SIGHUP, &action, nullptr);
  std::signal(SIGALRM, SIG_DFL);
}

// Who reads it ends soon, so the alarm is off.
bool is_interrupted() {
  if (g_terminated != 0) alarm(0);
  return g_interrupted != 0;
}
bool is_terminated() { return g_terminated != 0; }

}  // namespace samebytes::cli
