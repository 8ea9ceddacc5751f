// Profiling: what ran, when, for which layer, and how close to the device's bounds.
//   sb::Engine engine({.profile = true});
//   sb::Profiler profiler(engine, {.wait = 1, .warmup = 2, .active = 10});
//   for (...) { adam.step(loss); profiler.step(); }
//   sb::Profile profile = profiler.stop();
//   std::puts(sb::profile_table(profile, {.by = sb::ProfileBy::layer}).c_str());
// The device times launches (event profiling), so nothing waits between them. A launch of several fused ops belongs to
// the layer of the first one; a launch of the backward pass belongs to the layer whose gradient it computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "samebytes/peak.h"

namespace samebytes {

class Engine;

// A name that lives as long as the process; equal texts share one copy.
class Label {
 public:
  Label() = default;
  explicit Label(std::string_view text);
  const char* text() const { return text_; }
  bool is_empty() const { return *text_ == '\0'; }

 private:
  const char* text_ = "";
};

// A span without a layer; costs one load while no Profiler records. `name` must live as long as the program: a literal.
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
// of the nodes built in it. Modules open their own scopes. An empty label has no effect.
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

// Names this thread's lane of the timeline ("loader 0"); the default is "host".
void name_profile_lane(std::string_view name);

// One launch. Times in seconds since the recording began, by the host's clock.
struct ProfiledLaunch {
  std::string op;      // "conv2d", "add+relu"
  std::string kernel;  // entry, or "fused" for a generated kernel
  std::string layer;   // path and kind of the module ("block1.conv Conv2d"), a ProfileScope's name, or empty
  std::string shape;   // of its first result
  bool is_gradient = false;
  int device = 0;
  int step = 0;  // counted from the first recorded one
  double start = 0;
  double seconds = 0;
  double flops = 0;            // counted by its ops; a multiply-add is two
  double bytes = 0;            // of operands and results, each counted once
  std::size_t live_bytes = 0;  // of the engine meanwhile: arrays and live values of the arena
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
  std::size_t untimed = 0;               // launches of which the driver did not say when they ran; nothing counts them
  std::vector<ProfiledSpan> spans;
  int steps = 0;       // recorded
  double seconds = 0;  // from the first recorded step to the end of the last
  DevicePeak peak;     // for the share of the bound; zero: those columns stay blank

  double busy_seconds(int device = 0) const;  // while a launch ran
};

struct ProfilerOptions {
  int wait = 0;    // steps to skip first
  int warmup = 0;  // steps to record and discard, since the first ones cost more
  int active = 0;  // steps to keep; 0: until stop()
};

class Profiler {
 public:
  // Throws ArgumentError for an engine that was not opened with EngineOptions::profile, for negative numbers, and if
  // the engine already has a Profiler. The engine must outlive it.
  explicit Profiler(Engine& engine, const ProfilerOptions& options = {});
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  void step();           // call it after each enqueued step
  bool is_done() const;  // all active steps are recorded
  Profile stop();        // waits for enqueued work and ends the recording

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

// One row of a table: all launches of one kernel, op or layer.
struct ProfileRow {
  std::string name;
  std::int64_t count = 0;
  double seconds = 0;
  double share = 0;  // of the time of all launches
  double flops = 0;
  double bytes = 0;
  // The larger of its two bounds (flops over peak, bytes over bandwidth), in seconds, divided by its seconds; 0 if the
  // peak is unknown. Above 1 if the bytes were in a cache.
  double share_of_bound = 0;
};
std::vector<ProfileRow> profile_rows(const Profile& profile, ProfileBy by, ProfileSort sort = ProfileSort::time);

struct ProfileTableOptions {
  ProfileBy by = ProfileBy::kernel;
  ProfileSort sort = ProfileSort::time;
  int top = 20;  // lines; one further line sums the rest; 0: all
};
// Text for people: name, count per step, time per step, share, GFLOP/s, GB/s, share of the bound.
std::string profile_table(const Profile& profile, const ProfileTableOptions& options = {});
// The figures and the tables by kernel, op and layer as one line of JSON, without its end.
std::string profile_json(const Profile& profile, ProfileSort sort = ProfileSort::time);

// The timeline as Chrome's trace events (JSON), for https://ui.perfetto.dev: a lane for each thread and device, and a
// counter of live memory.
std::string chrome_trace(const Profile& profile);
// One self-contained page: shares, tables by kernel and layer, roofline, timeline of a step and memory, as inline SVG.
std::string profile_html(const Profile& profile, std::string_view title);

}  // namespace samebytes
