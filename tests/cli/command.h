// Runs build/samebytes as a child process: its two streams apart, a signal after a given word, or on a terminal of its
// own.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/process.h"

namespace samebytes::testing {

struct CommandRun {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment = {};
  std::string signal_after = {};  // a signal is sent when standard output holds this text
  int signal = SIGINT;
  std::string input = {};  // standard input; none is at its end at once
  bool terminal = false;   // standard output and error are one terminal of 100 columns
};

struct CommandResult {
  int status = -1;  // exit status; 128 + signal where one ended it
  std::string out;
  std::string err;
  double first_output_seconds = 0;  // from the start to the first byte of either stream

  std::string last_line() const {
    const std::size_t end = out.find_last_not_of('\n');
    if (end == std::string::npos) return {};
    const std::size_t begin = out.find_last_of('\n', end);
    return out.substr(begin == std::string::npos ? 0 : begin + 1,
                      end + 1 - (begin == std::string::npos ? 0 : begin + 1));
  }
  // The last line of standard output as JSON; discarded (is_discarded) where it is none.
  nlohmann::ordered_json json() const { return nlohmann::ordered_json::parse(last_line(), nullptr, false); }
};

inline CommandResult run_command(const CommandRun& run) {
  CommandResult result;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> words = {built_program("samebytes")};
  words.insert(words.end(), run.arguments.begin(), run.arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int out[2] = {-1, -1}, err[2] = {-1, -1};
  pid_t child = -1;
  if (run.terminal) {
    winsize size = {};
    size.ws_row = 24;
    size.ws_col = 100;
    child = forkpty(&out[0], nullptr, nullptr, &size);
  } else {
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return result;
    child = fork();
  }
  if (child < 0) return result;
  if (child == 0) {
    if (!run.terminal) {
      const int in = memfd_create("input", 0);
      if (write(in, run.input.data(), run.input.size()) < 0) _exit(127);
      lseek(in, 0, SEEK_SET);
      dup2(in, STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      dup2(err[1], STDERR_FILENO);
    }
    for (const auto& [name, value] : run.environment) setenv(name.c_str(), value.c_str(), 1);
    execv(argv[0], argv.data());
    _exit(127);
  }
  if (!run.terminal) {
    close(out[1]);
    close(err[1]);
  }
  bool signalled = run.signal_after.empty();
  pollfd ends[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  for (int living = run.terminal ? 1 : 2; living > 0;) {
    if (poll(ends, 2, -1) < 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t got = read(ends[i].fd, buffer, sizeof buffer);
      if (got <= 0) {
        close(ends[i].fd);
        ends[i].fd = -1;
        --living;
        continue;
      }
      if (result.out.empty() && result.err.empty())
        result.first_output_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      (i == 0 ? result.out : result.err).append(buffer, static_cast<std::size_t>(got));
    }
    if (!signalled && result.out.find(run.signal_after) != std::string::npos) {
      kill(child, run.signal);
      signalled = true;
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

inline CommandResult run_command(std::vector<std::string> arguments,
                                 std::map<std::string, std::string> environment = {}) {
  CommandRun run;
  run.arguments = std::move(arguments);
  run.environment = std::move(environment);
  return run_command(run);
}

}  // namespace samebytes::testing
