#include "runtime/compilers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <set>

#include "core/available_memory.h"
#include "runtime/compile_messages.h"

extern char** environ;

namespace samebytes::detail {
namespace {

constexpr int kMostSilence = 30'000;                      // milliseconds without any answer
constexpr int kMostUnread = 10;                           // seconds in which a process reads nothing of its job
constexpr std::size_t kBytesOfProcess = 320 * (1 << 20);  // that a compiler process may need

// One thread is enough for a driver that only compiles, on any core; the variables are PoCL's, of its versions. What is
// preloaded into this process is not meant for others.
std::vector<std::string> environment_of_compilers() {
  std::vector<std::string> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  for (const std::string_view each : {"POCL_AFFINITY=0", "POCL_MAX_PTHREAD_COUNT=1", "POCL_CPU_MAX_CU_COUNT=1",
                                      "POCL_MAX_COMPUTE_UNITS=1", "LD_PRELOAD="}) {
    const std::string_view name = each.substr(0, each.find('=') + 1);
    std::erase_if(variables, [&](const std::string& variable) { return variable.starts_with(name); });
    if (name.size() < each.size()) variables.emplace_back(each);
  }
  return variables;
}

}  // namespace

struct Compilers::Process {
  pid_t pid = -1;
  int socket = -1;
  std::set<std::uint64_t> known;  // programs that it was sent, by the first half of their keys
  const CompileJob* job = nullptr;
  bool is_gone = false;

  // It has nothing that must be kept: what it compiled lies in the driver's cache.
  ~Process() {
    if (socket >= 0) ::close(socket);
    if (pid > 0) ::kill(pid, SIGKILL);
    int status = 0;
    while (pid > 0 && ::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
};

Compilers::Compilers(std::string program, std::string platform, std::string device, int most)
    : program_(std::move(program)),
      platform_(std::move(platform)),
      device_(std::move(device)),
      most_(static_cast<std::size_t>(std::max(most, 1))) {}

Compilers::~Compilers() = default;

void Compilers::close() { processes_.clear(); }

bool Compilers::start() {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return false;
  auto process = std::make_unique<Process>();
  process->socket = sockets[0];
  const timeval most{.tv_sec = kMostUnread, .tv_usec = 0};  // else one that reads nothing stops this process for ever
  ::setsockopt(sockets[0], SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, sockets[1], STDIN_FILENO);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_WRONLY, 0);
  std::vector<std::string> variables = environment_of_compilers();
  std::vector<char*> environment;
  environment.reserve(variables.size() + 1);
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  std::string program = program_, verb = "--compile-kernels";
  char* const arguments[] = {program.data(), verb.data(), nullptr};
  const int status = ::posix_spawn(&process->pid, program_.c_str(), &actions, nullptr, arguments, environment.data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(sockets[1]);
  if (status != 0) {
    process->pid = -1;
    return false;
  }
  MessageWriter message;
  message.put(static_cast<std::uint64_t>(CompileMessage::device));
  message.put(platform_);
  message.put(device_);
  if (!message.send_to(process->socket)) return false;
  processes_.push_back(std::move(process));
  return true;
}

void Compilers::give(Process& process, const CompileJob& job) {
  process.job = &job;
  if (process.known.insert(job.source->key.a).second) {
    MessageWriter program;
    program.put(static_cast<std::uint64_t>(CompileMessage::program));
    program.put(job.source->key.a);
    program.put(job.source->key.b);
    program.put(job.source->text);
    program.put(job.source->options);
    process.is_gone = !program.send_to(process.socket);
    if (process.is_gone) return;
  }
  MessageWriter kernel;
  kernel.put(static_cast<std::uint64_t>(CompileMessage::kernel));
  kernel.put(job.source->key.a);
  kernel.put(job.entry);
  kernel.put(static_cast<std::uint64_t>(job.dimensions));
  for (int d = 0; d < 3; ++d) {
    kernel.put(std::uint64_t{job.groups[d]});
    kernel.put(std::uint64_t{job.local[d]});
  }
  kernel.put(std::uint64_t{job.arguments.size()});
  for (const BoundArgument& argument : job.arguments) {
    kernel.put(static_cast<std::uint64_t>(argument.index));
    kernel.put(std::uint64_t{argument.array_bytes});
    kernel.put(std::uint64_t{argument.size});
    kernel.put(argument.bytes);
  }
  process.is_gone = !kernel.send_to(process.socket);
}

std::size_t Compilers::run(const std::vector<CompileJob>& jobs, const std::function<void()>& one_done) {
  if (!is_usable_ || jobs.empty()) return 0;
  const std::size_t room = std::max<std::size_t>(1, available_memory().value_or(0) / kBytesOfProcess);
  const std::size_t wanted = std::min({jobs.size(), most_, std::max(room, processes_.size())});
  while (processes_.size() < wanted && start()) {
  }
  std::deque<const CompileJob*> waiting;
  for (const CompileJob& job : jobs) waiting.push_back(&job);
  std::size_t done = 0;
  for (;;) {
    std::vector<pollfd> answers;
    std::vector<Process*> asked;
    for (const auto& process : processes_) {
      while (!process->is_gone && process->job == nullptr && !waiting.empty()) {
        const CompileJob* const job = waiting.front();
        waiting.pop_front();
        give(*process, *job);
        if (process->is_gone) waiting.push_front(job);
      }
      if (process->is_gone || process->job == nullptr) continue;
      answers.push_back({process->socket, POLLIN, 0});
      asked.push_back(process.get());
    }
    std::erase_if(processes_, [](const auto& process) { return process->is_gone; });
    if (answers.empty()) break;
    const int ready = ::poll(answers.data(), answers.size(), kMostSilence);
    if (ready < 0 && errno == EINTR) continue;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (ready > 0 && answers[i].revents == 0) continue;
      char answer = 0;
      asked[i]->is_gone = ready <= 0 || ::recv(answers[i].fd, &answer, 1, 0) != 1;
      asked[i]->job = nullptr;
      if (asked[i]->is_gone) continue;
      done += answer == 1 ? 1 : 0;
      if (one_done) one_done();
    }
  }
  is_usable_ = done > 0;
  return done;
}

}  // namespace samebytes::detail
