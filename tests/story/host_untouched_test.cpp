// A program that uses the library finds its process as it was: locale, signal handlers and masks, floating-point mode,
// environment, working directory, umask, streams and descriptors. In a process of its own, since drivers change what
// they like at their first use, which is why each of them runs a kernel, without the library, before the comparison
// begins.
#include <CL/cl.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <clocale>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <locale>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/files.h"
#include "support/process.h"

extern char** environ;

namespace samebytes::testing {
namespace {

std::string control_words() {
  std::ostringstream text;
  text << std::fegetround();
#if defined(__x86_64__)
  text << ' ' << (__builtin_ia32_stmxcsr() & 0xffc0U);  // modes, without the flags of what has happened
#endif
  return text.str();
}

// Whatever a host could notice, by name.
std::map<std::string, std::string> seen() {
  std::map<std::string, std::string> what;
  what["locale"] = std::setlocale(LC_ALL, nullptr);
  what["C++ locale"] = std::locale().name();
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0) continue;
    std::ostringstream text;
    text << reinterpret_cast<const void*>(action.sa_handler) << ' ' << action.sa_flags;
    what["signal " + std::to_string(signal)] = text.str();
  }
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  for (int signal = 1; signal < NSIG; ++signal)
    if (sigismember(&mask, signal) == 1) what["mask"] += std::to_string(signal) + " ";
  what["floating point"] = control_words();
  for (char** one = environ; *one != nullptr; ++one) what["environment"] += std::string(*one) + "\n";
  what["folder"] = std::filesystem::current_path().string();
  const mode_t mode = umask(0);
  umask(mode);
  what["umask"] = std::to_string(mode);
  for (const int resource : {RLIMIT_NOFILE, RLIMIT_STACK, RLIMIT_AS, RLIMIT_CORE}) {
    rlimit limit{};
    getrlimit(static_cast<__rlimit_resource>(resource), &limit);
    what["limit " + std::to_string(resource)] = std::to_string(limit.rlim_cur);
  }
  what["priority"] = std::to_string(getpriority(PRIO_PROCESS, 0));
  what["terminate"] = std::to_string(reinterpret_cast<std::uintptr_t>(std::get_terminate()));
  what["new handler"] = std::to_string(reinterpret_cast<std::uintptr_t>(std::get_new_handler()));
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  what["cores"] = std::to_string(CPU_COUNT(&cores));
  return what;
}

// Most of what a program does: data, a network, training, files, errors, logs, a second engine, threads.
void use_all(const std::string& folder) {
  Engine engine;
  const EngineScope scope(engine);
  nn::Linear layer({.in = 8, .out = 3});
  optim::Adam adam(layer.parameters(), {.rate = 1e-2});
  for (int step = 0; step < 3; ++step) {
    const Array loss = sum(square(layer(uniform({4, 8}))));
    adam.step(gradients(loss, adam.parameters()));
    EXPECT_TRUE(std::isfinite(loss.value()));
  }
  io::save(folder + "/net.safetensors", layer);
  io::load(folder + "/net.safetensors", layer);
  EXPECT_THROW(matmul(ones({2, 3}), ones({2, 3})), ArgumentError);
  EXPECT_THROW(io::load(folder + "/missing", layer), IoError);
  set_log_sink([](std::string_view, std::string_view) {});
  log_message("info", "hello");
  set_log_sink({});
  std::thread([] {
    Engine other;
    const EngineScope inner(other);
    EXPECT_EQ(sum(ones({3})).value(), 3);
  }).join();
  explain(engine);
}

// Each driver compiles and runs a kernel, as the library will ask it to. Returns how many did.
int use_drivers() {
  std::vector<cl_platform_id> platforms(16);
  cl_uint count = 0;
  if (clGetPlatformIDs(static_cast<cl_uint>(platforms.size()), platforms.data(), &count) != CL_SUCCESS) return 0;
  platforms.resize(std::min<std::size_t>(count, platforms.size()));
  int ran = 0;
  for (const cl_platform_id platform : platforms) {
    cl_device_id device = nullptr;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS) continue;
    const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
    if (context == nullptr) continue;
    const cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, nullptr, nullptr);
    const cl_mem bytes = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, nullptr);
    const char* text = "kernel void fill(global int* to) { to[get_global_id(0)] = 1; }";
    const cl_program program = clCreateProgramWithSource(context, 1, &text, nullptr, nullptr);
    clBuildProgram(program, 1, &device, "", nullptr, nullptr);
    const cl_kernel kernel = clCreateKernel(program, "fill", nullptr);
    clSetKernelArg(kernel, 0, sizeof bytes, &bytes);
    const std::size_t threads = 8;
    if (clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &threads, nullptr, 0, nullptr, nullptr) == CL_SUCCESS &&
        clFinish(queue) == CL_SUCCESS)
      ++ran;
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseMemObject(bytes);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
  }
  return ran;
}

std::set<std::string> descriptors() {
  std::set<std::string> open;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const std::string target = std::filesystem::read_symlink(entry.path(), ignored).string();
    if (!target.empty() && target.find("/proc/") == std::string::npos) open.insert(target);
  }
  return open;
}

TEST(HostChild, DISABLED_nothing_of_the_process_changes) {
  std::setlocale(LC_ALL, "C.UTF-8");
  std::fesetround(FE_UPWARD);
  std::signal(SIGUSR1, SIG_IGN);
  const TemporaryFolder folder;
  EXPECT_GE(use_drivers(), 1);
  const auto before = seen();
  const auto open_before = descriptors();
  use_all(folder.string());
  const auto after = seen();
  EXPECT_EQ(open_before, descriptors());
  ASSERT_EQ(before.size(), after.size());
  for (const auto& [name, value] : before) EXPECT_EQ(value, after.at(name)) << name;
}

// Drivers are used before: PoCL and LLVM set handlers of signals and a variable of their own then.
TEST(Host, nothing_of_its_process_changes_and_nothing_is_printed) {
  const Outcome outcome = run_child("HostChild.DISABLED_nothing_of_the_process_changes");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  // GoogleTest's own lines and no others.
  std::istringstream lines(outcome.output);
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(line.empty() || line.front() == '[' || line.starts_with("Note: Google Test") ||
                line.starts_with("Running main"))
        << line;
}

}  // namespace
}  // namespace samebytes::testing
