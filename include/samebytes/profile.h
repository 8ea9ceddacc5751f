// Profiling: what ran, when, for which layer, at what share of the device's bounds.
//   sb::Engine engine({.profile = true});
//   sb::Profiler profiler(engine, {.wait = 1, .warmup = 2, .active = 10});
//   for (...) { adam.step(loss); profiler.step(); }
//   sb::Profile profile = profiler.stop();
//   std::puts(sb::profile_table(profile, {.by = sb::ProfileBy::layer}).c_str());
// Launches are timed by the device (event profiling), so nothing is waited for between them. A launch of several fused
// ops belongs to the layer of its first one; launches of the reverse pass belong to the layer whose gradient they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "samebytes/peak.h"

namespace samebytes {

class Engine;

// A name that is kept for the life of the process; equal texts are one.
class Label {
 public:
  Label() = default;
  explicit Label(std::string_view text);
  const char* text() const { return text_; }
  bool is_empty() const { return *text_ == '\0'; }

 private:
  const char* text_ = "";
};

// A span only, which costs one load where nobody records. `name` lives as long as the program: a literal.
class ProfileSpan {
 public:
  explicit ProfileSpan(const char* name);
  ~ProfileSpan();
  ProfileSpan(const ProfileSpan&) = delete;
  ProfileSpan& operator=(const ProfileSpan&) = delete;

 private:
  const char* name_;
  double start_ = -1;
};

// Names what this thread does in a block: a span in its lane of the timeline while a Profiler is active, and the layer
// of the nodes that are built meanwhile. Modules open one for themselves. An empty label changes nothing.
class ProfileScope {
 public:
  explicit ProfileScope(Label label);
  explicit ProfileScope(std::string_view name) : ProfileScope(Label(name)) {}
  ~ProfileScope();
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  Label previous_;
  ProfileSpan span_;
};

// Names this thread's lane of the timeline ("loader 0"); else it is "host".
void name_profile_lane(std::string_view name);

// One launch. Times in seconds since the recording began, by the host's clock.
struct ProfiledLaunch {
  std::string op;      // "conv2d", "add+relu"
  std::string kernel;  // entry, or "fused" for a generated one
  std::string layer;   // path and kind of the module ("block1.conv Conv2d"), a ProfileScope's name, or empty
  std::string shape;   // of its first result
  bool is_gradient = false;
  int device = 0;
  int step = 0;  // counted from the first recorded one
  double start = 0;
  double seconds = 0;
  double flops = 0;            // that its ops count; multiply-adds are two
  double bytes = 0;            // of operands and results, each once
  std::size_t live_bytes = 0;  // of the engine while it ran: arrays, and what is alive in the arena
};

struct ProfiledSpan {
  std::string lane;  // "host", "loader 0"
  std::string name;
  double start = 0;
  double seconds = 0;
};

struct Profile {
  std::vector<std::string> devices;
  std::vector<ProfiledLaunch> launches;  // in the order of their starts
  std::vector<ProfiledSpan> spans;
  int steps = 0;       // recorded
  double seconds = 0;  // from the first recorded step to the end of the last
  DevicePeak peak;     // for the shares of the bound; zero: those columns stay blank

  double busy_seconds(int device = 0) const;  // some launch ran
};

struct ProfilerOptions {
  int wait = 0;    // steps that are left out first
  int warmup = 0;  // steps that are recorded and thrown away, since the first ones cost more
  int active = 0;  // steps that are kept; 0: until stop()
};

class Profiler {
 public:
  // Throws ArgumentError for an engine that was not opened with EngineOptions::profile, for negative numbers, and where
  // the engine has a living Profiler. The engine must outlive it.
  explicit Profiler(Engine& engine, const ProfilerOptions& options = {});
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  void step();           // a step was enqueued
  bool is_done() const;  // all active steps are recorded
  Profile stop();        // waits for what was enqueued; afterwards nothing is recorded any more

 private:
  void begin();
  Engine* engine_;
  ProfilerOptions options_;
  int step_ = 0;
  bool is_recording_ = false, is_stopped_ = false;
  double begin_ = 0, end_ = 0;
};

enum class ProfileBy : std::uint8_t { kernel, op, layer };
enum class ProfileSort : std::uint8_t { time, count, flops, bytes };

// One line of a table: all launches of one kernel, op or layer.
struct ProfileRow {
  std::string name;
  std::int64_t count = 0;
  double seconds = 0;
  double share = 0;  // of the time of all launches
  double flops = 0;
  double bytes = 0;
  // Seconds that the larger of its two bounds (flops over peak, bytes over bandwidth) asks for, over its seconds; 0
  // where the peak is not known. Above 1 where the bytes were in a cache.
  double share_of_bound = 0;
};
std::vector<ProfileRow> profile_rows(const Profile& profile, ProfileBy by, ProfileSort sort = ProfileSort::time);

struct ProfileTableOptions {
  ProfileBy by = ProfileBy::kernel;
  ProfileSort sort = ProfileSort::time;
  int top = 20;  // lines; the rest is one line more; 0: all
};
// Text for people: name, count per step, time per step, share, GFLOP/s, GB/s, share of the bound.
std::string profile_table(const Profile& profile, const ProfileTableOptions& options = {});

// The timeline as Chrome's trace events (JSON), for https://ui.perfetto.dev: a lane for each thread and device, and a
// counter of live memory.
std::string chrome_trace(const Profile& profile);
// One self-contained page: shares, tables by kernel and layer, roofline, timeline of a step and memory, as inline SVG.
std::string profile_html(const Profile& profile, std::string_view title);

}  // namespace samebytes
