#include "support/process.h"
#include "support/places.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

extern char** environ;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SAMEBYTES_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SAMEBYTES_SANITIZED 1
#endif

namespace samebytes::testing {

Outcome run_program(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& environment) {
  std::vector<std::string> variables;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string text = *one;
    if (environment.count(text.substr(0, text.find('='))) == 0) variables.push_back(text);
  }
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  std::vector<char*> argv, envp;
  for (const auto& text : arguments) argv.push_back(const_cast<char*>(text.c_str()));
  for (const auto& text : variables) envp.push_back(const_cast<char*>(text.c_str()));
  argv.push_back(nullptr);
  envp.push_back(nullptr);

  Outcome outcome;
  int ends[2];
  if (pipe(ends) != 0) return outcome;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child = 0;
  const int started = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (started != 0) {
    close(ends[0]);
    outcome.status = 127;
    return outcome;
  }
  char buffer[4096];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    outcome.output.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

std::string built_program(const std::string& name) { return build_folder() + "/" + name; }

Outcome run_child(const std::string& filter, const std::map<std::string, std::string>& environment) {
  // All of them, also where this process has one shard of the tests.
  std::map<std::string, std::string> variables{{"GTEST_TOTAL_SHARDS", "1"}, {"GTEST_SHARD_INDEX", "0"}};
  variables.insert(environment.begin(), environment.end());
  return run_program({std::filesystem::read_symlink("/proc/self/exe").string(), "--gtest_also_run_disabled_tests",
                      "--gtest_filter=" + filter},
                     variables);
}

std::string temporary_path(const std::string& name) {
  static int count = 0;
  return (std::filesystem::temp_directory_path() /
          ("samebytes_" + std::to_string(getpid()) + "_" + std::to_string(count++) + "_" + name))
      .string();
}

bool is_sanitized() {
#ifdef SAMEBYTES_SANITIZED
  return true;
#else
  return false;
#endif
}

}  // namespace samebytes::testing
