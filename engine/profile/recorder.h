// Recorder: the one place that launches, spans and memory are noted while a Profiler is active. The runtime hands it
// events with a clock that reads them; so this room knows no OpenCL. Thread-safe; costs one load where nobody records.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "core/source_line.h"
#include "samebytes/profile.h"

namespace samebytes::detail {

// What a launch of a plan is, for whoever looks at its time later.
struct LaunchInfo {
  std::string op, kernel, layer, shape;
  bool is_gradient = false;
  double flops = 0;
  double bytes = 0;
  std::size_t arena_bytes = 0;  // alive in the arena while it runs
};

// ", layer 2.block ResidualBlock, written at train.cpp:40": whose work it is, for errors.
std::string source_text(const std::string& layer, bool is_gradient, SourceLine line);

// A launch of a run: what it is, and the user's line behind it.
struct LaunchSource {
  std::shared_ptr<const LaunchInfo> info;  // null: the engine's own work
  SourceLine line;
  std::string text() const;  // "; result [3, 5], kernel softmax_fwd, layer ..., written at ..."
};

// Reads and releases the events of one driver.
class EventClock {
 public:
  virtual ~EventClock() = default;
  // Seconds of the host's steady clock; false where the event failed or has no times.
  virtual bool read(void* event, double* start, double* end) const = 0;
  virtual void release(void* event) const = 0;
};

double steady_seconds();
bool is_something_recorded();
// A span of this thread for every active recorder: threads of the host belong to no engine.
void add_host_span(const char* name, double start, double end);
const char* profile_lane();  // of this thread

class Recorder {
 public:
  ~Recorder();
  bool claim() { return is_claimed_.exchange(true); }  // by a Profiler; true: there is one already
  void release() { is_claimed_.store(false); }
  bool is_active() const { return is_active_.load(std::memory_order_relaxed); }
  void start();  // forgets what there was
  void stop();

  // Takes over the event, which must be complete before take().
  void add_launch(std::shared_ptr<const LaunchInfo> info, void* event, const EventClock& clock, int device,
                  std::size_t other_bytes);
  // A launch that the host ran, or one whose times are known.
  void add_timed_launch(std::shared_ptr<const LaunchInfo> info, double start, double end, int device, int step,
                        std::size_t other_bytes);
  void add_span(const char* name, double start, double end);
  int step() const { return step_.load(std::memory_order_relaxed); }
  void set_step(int step) { step_.store(step, std::memory_order_relaxed); }
  // Everything since start(), with times since `origin`.
  void take(double origin, Profile& profile);

 private:
  struct Launch {
    std::shared_ptr<const LaunchInfo> info;
    void* event;              // null: the times below
    const EventClock* clock;  // of the event
    int device;
    int step;
    std::size_t other_bytes;
    double start = 0, end = 0;
  };
  struct Span {
    const char* lane;
    const char* name;
    double start, end;
  };
  void forget() SAMEBYTES_REQUIRES(mutex_);
  void enlist(bool on);

  std::atomic<bool> is_claimed_{false};
  std::atomic<bool> is_active_{false};
  std::atomic<int> step_{0};
  Mutex mutex_;
  std::vector<Launch> launches_ SAMEBYTES_GUARDED_BY(mutex_);
  std::vector<Span> spans_ SAMEBYTES_GUARDED_BY(mutex_);
};

// A span of this thread while it lives, where the recorder is active.
class RecordedSpan {
 public:
  RecordedSpan(Recorder& recorder, const char* name)
      : recorder_(recorder.is_active() ? &recorder : nullptr), name_(name), start_(recorder_ ? steady_seconds() : 0) {}
  ~RecordedSpan() {
    if (recorder_) recorder_->add_span(name_, start_, steady_seconds());
  }
  RecordedSpan(const RecordedSpan&) = delete;
  RecordedSpan& operator=(const RecordedSpan&) = delete;

 private:
  Recorder* recorder_;
  const char* name_;
  double start_;
};

}  // namespace samebytes::detail
