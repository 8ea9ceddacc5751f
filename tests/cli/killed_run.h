// A run that is killed and goes on: what the tests of checkpoints share.
#pragma once

#include <gtest/gtest.h>
#include <spawn.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cli/command.h"
#include "samebytes/random.h"
#include "support/files.h"

extern char** environ;

namespace samebytes::testing {

using Words = std::vector<std::string>;

inline Words joined(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Files {
  const TemporaryFolder folder;
  const std::string saved = folder / "saved.safetensors", log = folder / "log.jsonl", kept = folder / "kept";
  Words words() const { return {"--save", saved, "--log", log}; }
  Words keeping(const std::string& every) const {
    return joined(words(), {"--checkpoint", kept, "--checkpoint-every", every});
  }
};

inline std::vector<nlohmann::json> lines_of(const std::string& log) {
  std::istringstream text(get(log));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

// Steps and epochs without what a process measures of itself, times and memory: each once and in order.
inline std::vector<nlohmann::json> results_in(const std::string& log) {
  std::vector<nlohmann::json> results;
  for (nlohmann::json& line : lines_of(log)) {
    if (line["event"] != "step" && line["event"] != "epoch") continue;
    for (const char* measured : {"ms", "seconds", "stall_fraction", "slots", "peak_bytes"}) line.erase(measured);
    results.push_back(line);
  }
  return results;
}

// Without parameters where several networks were trained, of which none is saved.
inline void expect_same_run(const Files& a, const Files& b, bool is_saved = true) {
  if (is_saved) {
    EXPECT_FALSE(get(a.saved).empty());
    EXPECT_TRUE(get(a.saved) == get(b.saved)) << "the parameters differ";
  }
  EXPECT_EQ(results_in(a.log), results_in(b.log));
}

inline std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".safetensors") names.insert(entry.path().filename().string());
  return names;
}

// Runs the command and kills it `milliseconds` after the first new file appeared in the folder. Its status; 137 where
// it was killed.
inline int run_and_kill(Words arguments, const std::string& folder, int milliseconds) {
  arguments.insert(arguments.begin(), built_program("samebytes"));
  std::vector<char*> argv;
  for (std::string& word : arguments) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const std::set<std::string> before = names_in(folder);
  pid_t child = 0;
  const int started = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (started != 0) return 127;
  using Clock = std::chrono::steady_clock;
  Clock::time_point end = Clock::time_point::max();
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (end == Clock::time_point::max() && names_in(folder) != before)
      end = Clock::now() + std::chrono::milliseconds(milliseconds);
    if (Clock::now() >= end) kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Kills a run again and again, at moments drawn from the seed, and lets it end at last.
inline void kill_until_done(const Words& run, const Files& files, std::uint64_t seed, int kills) {
  Random random({.seed = seed});
  const Words resuming = joined(run, {"--resume", "auto"});
  for (int i = 0; i < kills; ++i) {
    const int status = run_and_kill(resuming, files.kept, static_cast<int>(random.below(40)));
    if (status == 0) return;
    ASSERT_EQ(status, 137);
  }
  const CommandResult last = run_command(resuming);
  ASSERT_EQ(last.status, 0) << last.err;
}

}  // namespace samebytes::testing
