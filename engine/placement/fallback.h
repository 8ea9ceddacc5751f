// Per-op fallback: what a device cannot run is placed on another one when the plan is made, and counted.
// A device refuses a launch where its driver does not build the kernel, where it lacks double, where the groups are too
// large for it or take too much local memory, and where it does not accept the launch when the plan first runs.
// docs/decisions/fallback.md has the rules.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/context.h"
#include "graph/graph_list.h"
#include "samebytes/error.h"

namespace samebytes::detail {

// A launch that its device refuses.
struct Refusal {
  std::vector<int> places;  // of the nodes that it is for
  std::string op;
  int device = 0;
  std::string reason;        // one line
  std::exception_ptr error;  // what is thrown where no other device can
};

// Thrown by make_plan() with EngineOptions::fallback: the launches of a plan that must run elsewhere.
class Refused final : public Error {
 public:
  explicit Refused(std::vector<Refusal> refusals);
  const std::vector<Refusal>& refusals() const { return refusals_; }

 private:
  std::vector<Refusal> refusals_;
};

// Thrown by a run with EngineOptions::fallback: its device did not accept a launch, the first time.
class LaunchRefused final : public Error {
 public:
  LaunchRefused(const DeviceError& error, int launch) : Error(error.what()), error_(error), launch_(launch) {}
  const DeviceError& error() const { return error_; }
  int launch() const { return launch_; }

 private:
  DeviceError error_;
  int launch_;
};

// What of a plan runs on another device than the one that it was for: an entry of Fallbacks, and how much each run is.
struct PlacedElsewhere {
  int entry = 0;
  std::uint64_t launches = 0, bytes = 0;
};

// What an engine knows of refusals, and the report of what ran elsewhere. Under the engine's lock.
class Fallbacks {
 public:
  explicit Fallbacks(Context& context) : context_(context) {}
  bool is_on() const { return context_.options.fallback; }
  // A launch that was refused when it was enqueued: kernels of this key are refused on this device from now on.
  void note_refused(int device, std::uint64_t kernel_key, std::string reason);
  const std::string* refusal_of(int device, std::uint64_t kernel_key) const;  // null: none is known
  int entry_of(const Refusal& refusal, int ran_on);  // of the report; a new one is told to the log
  void count(std::span<const PlacedElsewhere> run);  // one run of a plan
  void add_bytes(int entry, std::size_t bytes) { report_[static_cast<std::size_t>(entry)].bytes_crossed += bytes; }
  const std::vector<Fallback>& report() const { return report_; }

 private:
  Context& context_;
  std::map<std::pair<int, std::uint64_t>, std::string> refused_;
  std::vector<Fallback> report_;
};

// Makes the kernels of one plan. Without EngineOptions::fallback, what is thrown names the op, and the option.
class KernelMaker {
 public:
  explicit KernelMaker(const Fallbacks& fallbacks, const GraphList* list = nullptr)
      : fallbacks_(fallbacks), list_(list) {}
  struct Request {
    std::string op;
    std::vector<int> places;  // of the nodes that it is for
    Device& device;
    Dtype real = Dtype::f32;
    Geometry geometry = {};
    std::string text = {};  // what tells the kernel from others: its entry, or its generated text
  };
  using Build = std::function<std::unique_ptr<Kernel>()>;
  // Null where the launch is refused and there is fallback. Sets the launch's key.
  std::unique_ptr<Kernel> make(const Request& request, const Build& build, std::uint64_t* key);
  // The same for other work that builds kernels; false where it was refused.
  bool run(const Request& request, const std::function<void()>& work);
  bool is_refused(const Request& request, std::uint64_t* key);  // a launch like it, when it was enqueued
  void stop_if_refused();                                       // throws Refused

 private:
  std::string source_of(const Request& request) const;
  template <class MakeError>  // of a text
  void refuse(const Request& request, const std::string& reason, const std::string& text, MakeError make_error);
  const Fallbacks& fallbacks_;
  const GraphList* const list_;  // whose places the requests name, for errors; null: not known
  std::vector<Refusal> refusals_;
};

// The text of an error with the op before its first line, and what can be done about it behind.
std::string with_hint(const std::string& op, const std::string& text);

// The nodes of a graph that run on another device than they were built for, while one plan is made; the destructor sets
// them back.
class Moves {
 public:
  Moves(GraphList& list, Context& context, Fallbacks& fallbacks)
      : list_(list), context_(context), fallbacks_(fallbacks) {}
  ~Moves();
  Moves(const Moves&) = delete;
  // To the next device that can: of the same context, else a CPU, else any; the spare one last. Throws DeviceError with
  // the driver's words where there is none.
  void move(const Refused& refused);
  bool is_moved(int place) const { return moved_.count(place) != 0; }
  // The entries of the report that the moved nodes are of, by place; and why, a line for each entry.
  std::map<int, int> entries() const;
  std::vector<std::string> reasons(const std::map<int, int>& entries) const;
  // The entry of the nearest moved node that a node depends on; -1: none.
  int entry_behind(int place, const std::map<int, int>& entries) const;

 private:
  struct Move {
    Refusal refusal;  // the first one
    int target = 0;
  };
  struct Before {
    Node* node;
    int device;
  };
  int home_of(const Node& node) const;  // the device that it was built for
  int next_device(const std::set<int>& refused_by, int home) const;
  void place_on(int place, int device);

  GraphList& list_;
  Context& context_;
  Fallbacks& fallbacks_;
  std::map<int, Move> moved_;                // by place
  std::map<int, std::set<int>> refused_by_;  // by place: devices
  std::vector<Before> before_;               // in the order of changes
};

}  // namespace samebytes::detail
