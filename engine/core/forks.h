// fork() copies a process without its threads, and a driver, a loader and a lock that another thread held are of no use
// without theirs. What needs them keeps a ProcessMark: it says in the child that it stayed behind in the parent.
#pragma once

#include <sys/types.h>

namespace samebytes::detail {

// Forks between the start of the first process and this one. Costs one load.
unsigned fork_count();

class ProcessMark {
 public:
  ProcessMark();
  bool is_here() const { return forks_ == fork_count(); }
  // Throws Error where this is a child of the process of the mark: "eval: this engine was made in process 12 ...".
  void check(const char* op, const char* what) const;

 private:
  unsigned forks_;
  pid_t process_;
};

}  // namespace samebytes::detail
