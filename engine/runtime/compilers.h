// Compiles kernels in processes of their own. PoCL compiles one kernel at a time in a process, at its first launch, and
// keeps it in its cache folder; so several processes that share the folder compile as many at once, and the launches
// that follow find their kernels there. A compiler process is a program that calls serve_kernel_compiler(), as the
// samebytes command does. It launches one work-group of each kernel over memory of zeros that nobody else sees.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/hash.h"

namespace samebytes::detail {

// A program as the driver gets it.
struct ProgramSource {
  std::string text, options;
  Key128 key = {};  // in the driver's cache (kernel_cache.h)
};

// What a kernel argument was set to, as far as another process can use it.
struct BoundArgument {
  int index = 0;
  std::size_t array_bytes = 0;  // over 0: an array of so many bytes
  std::size_t size = 0;         // else: as given to clSetKernelArg
  std::string bytes = {};       // empty: null
};

struct CompileJob {
  std::shared_ptr<const ProgramSource> source;
  std::string entry = {};  // empty: the program is built and no kernel of it
  std::size_t groups[3] = {1, 1, 1}, local[3] = {1, 1, 1};
  int dimensions = 1;
  std::vector<BoundArgument> arguments = {};
};

// Under the engine's lock.
class Compilers {
 public:
  // `program` is started as PROGRAM --compile-kernels, at most `most` times; nothing happens before the first jobs.
  Compilers(std::string program, std::string platform, std::string device, int most);
  ~Compilers();
  Compilers(const Compilers&) = delete;

  // Returns when every job was tried. Jobs whose process ends, or answers nothing for half a minute, are left to this
  // process. `one_done` comes after each. Returns how many were done. Never throws.
  std::size_t run(const std::vector<CompileJob>& jobs, const std::function<void()>& one_done);
  void close();  // ends the processes; later jobs start new ones
  bool is_usable() const { return is_usable_; }

 private:
  struct Process;
  bool start();
  void give(Process& process, const CompileJob& job);

  const std::string program_, platform_, device_;
  const std::size_t most_;
  bool is_usable_ = true;  // no process could be started, or none answered: not tried again
  std::vector<std::unique_ptr<Process>> processes_;
};

// The loop of a compiler process, on a socket; returns its exit status.
int serve_compilers(int socket);

}  // namespace samebytes::detail
