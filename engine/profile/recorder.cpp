#include "profile/recorder.h"

#include <algorithm>
#include <chrono>
#include <unordered_set>

namespace samebytes {
namespace {

thread_local const char* lane_of_thread = "host";
std::atomic<int> active_count{0};

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

struct ActiveList {
  detail::Mutex mutex;
  std::vector<detail::Recorder*> recorders SAMEBYTES_GUARDED_BY(mutex);
};

ActiveList& active_list() {
  static auto* list = new ActiveList;  // never destroyed: threads may end after main
  return *list;
}

}  // namespace

namespace detail {

std::string source_text(const std::string& layer, bool is_gradient, SourceLine line) {
  std::string text = layer.empty() ? "" : ", layer " + layer;
  if (line.file) text += (is_gradient ? ", gradient of what is written at " : ", written at ") + line.text();
  return text;
}

std::string LaunchSource::text() const {
  if (!info) return {};
  return (info->shape.empty() ? "; kernel " : "; result " + info->shape + ", kernel ") + info->kernel +
         source_text(info->layer, info->is_gradient, line);
}

}  // namespace detail

Label::Label(std::string_view text) {
  static detail::Mutex* mutex = new detail::Mutex;  // never destroyed: names are read while the process ends
  static auto* names = new std::unordered_set<std::string, TextHash, std::equal_to<>>;
  const detail::MutexLock lock(*mutex);
  auto found = names->find(text);
  if (found == names->end()) found = names->emplace(text).first;
  text_ = found->c_str();
}

ProfileSpan::ProfileSpan(const char* name) : name_(name) {
  if (*name_ != '\0' && detail::is_something_recorded()) start_ = detail::steady_seconds();
}

ProfileSpan::~ProfileSpan() {
  if (start_ >= 0 && detail::is_something_recorded()) detail::add_host_span(name_, start_, detail::steady_seconds());
}

void name_profile_lane(std::string_view name) { lane_of_thread = Label(name).text(); }

namespace detail {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

const char* profile_lane() { return lane_of_thread; }

bool is_something_recorded() { return active_count.load(std::memory_order_relaxed) > 0; }

void add_host_span(const char* name, double start, double end) {
  ActiveList& list = active_list();
  const MutexLock lock(list.mutex);
  for (Recorder* recorder : list.recorders) recorder->add_span(name, start, end);
}

void Recorder::enlist(bool on) {
  ActiveList& list = active_list();
  const MutexLock lock(list.mutex);
  std::erase(list.recorders, this);
  if (on) list.recorders.push_back(this);
  active_count.store(static_cast<int>(list.recorders.size()), std::memory_order_relaxed);
}

Recorder::~Recorder() {
  enlist(false);
  const MutexLock lock(mutex_);
  forget();
}

void Recorder::forget() {
  for (const Launch& launch : launches_)
    if (launch.event) launch.clock->release(launch.event);
  launches_.clear();
  spans_.clear();
}

void Recorder::start() {
  {
    const MutexLock lock(mutex_);
    forget();
  }
  is_active_.store(true, std::memory_order_relaxed);
  enlist(true);
}

void Recorder::stop() {
  enlist(false);
  is_active_.store(false, std::memory_order_relaxed);
}

void Recorder::add_launch(std::shared_ptr<const LaunchInfo> info, void* event, const EventClock& clock, int device,
                          std::size_t other_bytes) {
  const MutexLock lock(mutex_);
  launches_.push_back({std::move(info), event, &clock, device, step_.load(std::memory_order_relaxed), other_bytes});
}

void Recorder::add_timed_launch(std::shared_ptr<const LaunchInfo> info, double start, double end, int device, int step,
                                std::size_t other_bytes) {
  const MutexLock lock(mutex_);
  launches_.push_back({std::move(info), nullptr, nullptr, device, step, other_bytes, start, end});
}

void Recorder::add_span(const char* name, double start, double end) {
  const MutexLock lock(mutex_);
  spans_.push_back({profile_lane(), name, start, end});
}

void Recorder::take(double origin, Profile& profile) {
  const MutexLock lock(mutex_);
  for (const Launch& launch : launches_) {
    double start = launch.start, end = launch.end;
    if (launch.event && !launch.clock->read(launch.event, &start, &end)) {
      if (launch.step >= 0) ++profile.untimed;
      continue;
    }
    const LaunchInfo& info = *launch.info;
    profile.launches.push_back({.op = info.op,
                                .kernel = info.kernel,
                                .layer = info.layer,
                                .shape = info.shape,
                                .is_gradient = info.is_gradient,
                                .device = launch.device,
                                .step = launch.step,
                                .start = start - origin,
                                .seconds = end - start,
                                .flops = info.flops,
                                .bytes = info.bytes,
                                .live_bytes = launch.other_bytes + info.arena_bytes});
  }
  for (const Span& span : spans_)
    profile.spans.push_back(
        {.lane = span.lane, .name = span.name, .start = span.start - origin, .seconds = span.end - span.start});
  forget();
  std::sort(profile.launches.begin(), profile.launches.end(),
            [](const ProfiledLaunch& a, const ProfiledLaunch& b) { return a.start < b.start; });
  std::sort(profile.spans.begin(), profile.spans.end(),
            [](const ProfiledSpan& a, const ProfiledSpan& b) { return a.start < b.start; });
}

}  // namespace detail
}  // namespace samebytes
