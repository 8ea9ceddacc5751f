#include "placement/fallback.h"

#include <algorithm>

#include "core/hash.h"
#include "graph/node.h"
#include "samebytes/log.h"

namespace samebytes::detail {
namespace {

constexpr std::size_t kLongestReason = 200;  // characters
constexpr const char* kHint = "another device can run it: EngineOptions::fallback, --fallback or SAMEBYTES_FALLBACK=1";
constexpr const char* kNobody = "and no other device of the engine can run it";

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// The op before the first line, and something behind it.
std::string told(const std::string& op, const std::string& text, const std::string& more) {
  const std::string line = first_line(text);
  const std::string named = line.rfind(op + ":", 0) == 0 ? line : op + ": " + line;
  return named + "; " + more + text.substr(line.size());
}

// What the compiler says: its first line about an error, else its first line.
std::string reason_of(const BuildError& error) {
  const std::string& log = error.log();
  std::string first, found;
  for (std::size_t begin = 0; begin < log.size() && found.empty();) {
    const std::size_t end = std::min(log.find('\n', begin), log.size());
    const std::string line = log.substr(begin, end - begin);
    if (first.empty()) first = line;
    if (line.find("error") != std::string::npos) found = line;
    begin = end + 1;
  }
  const std::string why = found.empty() ? first : found;
  return error.file() + " does not build" + (why.empty() ? "" : ": " + why);
}

std::string shortened(std::string text) {
  text = first_line(text);
  if (text.size() > kLongestReason) text = text.substr(0, kLongestReason - 2) + "..";
  return text;
}

std::string name_of_device(const DeviceInfo& info) { return info.id + " '" + info.name + "'"; }

std::uint64_t key_of(const KernelMaker::Request& request) {
  Hasher hasher;
  hasher.add(std::string_view(request.text));
  hasher.add(static_cast<std::uint64_t>(request.real));
  for (const std::size_t items : request.geometry.local) hasher.add(static_cast<std::uint64_t>(items));
  return hasher.key().a;
}

}  // namespace

std::string with_hint(const std::string& op, const std::string& text) { return told(op, text, kHint); }

Refused::Refused(std::vector<Refusal> refusals)
    : Error("launches of a plan were refused: " + refusals.front().op), refusals_(std::move(refusals)) {}

void Fallbacks::note_refused(int device, std::uint64_t kernel_key, std::string reason) {
  refused_[{device, kernel_key}] = std::move(reason);
}

const std::string* Fallbacks::refusal_of(int device, std::uint64_t kernel_key) const {
  const auto found = refused_.find({device, kernel_key});
  return found == refused_.end() ? nullptr : &found->second;
}

int Fallbacks::entry_of(const Refusal& refusal, int ran_on) {
  Runtime& runtime = *context_.runtime;
  Fallback entry{.op = refusal.op,
                 .device = name_of_device(runtime.device(refusal.device).info()),
                 .reason = refusal.reason,
                 .ran_on = name_of_device(runtime.device(ran_on).info())};
  for (std::size_t i = 0; i < report_.size(); ++i)
    if (report_[i].op == entry.op && report_[i].device == entry.device && report_[i].reason == entry.reason &&
        report_[i].ran_on == entry.ran_on)
      return static_cast<int>(i);
  log_message(report_.empty() ? "warning" : "info",
              "fallback: " + entry.op + " runs on " + entry.ran_on + ", " + entry.device + " cannot: " + entry.reason);
  report_.push_back(std::move(entry));
  return static_cast<int>(report_.size()) - 1;
}

void Fallbacks::count(std::span<const PlacedElsewhere> run) {
  for (const PlacedElsewhere& each : run) {
    Fallback& entry = report_[static_cast<std::size_t>(each.entry)];
    entry.launches += each.launches;
    entry.bytes_crossed += each.bytes;
  }
}

// "result [3, 5], layer 0 Linear, written at train.cpp:40; "
std::string KernelMaker::source_of(const Request& request) const {
  if (!list_ || request.places.empty()) return {};
  const Node& n = *list_->nodes[static_cast<std::size_t>(request.places.front())];
  return "result " + n.shape.to_string() + source_text(n.layer.text(), n.is_gradient, n.written_at) + "; ";
}

template <class MakeError>
void KernelMaker::refuse(const Request& request, const std::string& reason, const std::string& text,
                         MakeError make_error) {
  if (!fallbacks_.is_on()) throw make_error(told(request.op, text, source_of(request) + kHint));
  refusals_.push_back({request.places, request.op, request.device.index(), shortened(reason),
                       std::make_exception_ptr(make_error(told(request.op, text, kNobody)))});
}

bool KernelMaker::run(const Request& request, const std::function<void()>& work) {
  const DeviceInfo& info = request.device.info();
  if (request.real == Dtype::f64 && !info.has_f64) {
    refuse(request, "f64 needs a device with double",
           "kernels: f64 needs a device with double, " + info.name + " has none",
           [](const std::string& text) { return ArgumentError(text); });
    return false;
  }
  try {
    work();
    return true;
  } catch (const BuildError& error) {
    refuse(request, reason_of(error), error.what(),
           [&error](const std::string& text) { return BuildError(text, error.file(), error.defines(), error.log()); });
  } catch (const DeviceError& error) {
    refuse(request, error.what(), error.what(), [&error](const std::string& text) {
      return DeviceError(text, error.call(), error.status(), error.device());
    });
  }
  return false;
}

bool KernelMaker::is_refused(const Request& request, std::uint64_t* key) {
  if (!fallbacks_.is_on()) return false;
  *key = key_of(request);
  const std::string* const known = fallbacks_.refusal_of(request.device.index(), *key);
  if (!known) return false;
  const std::string device = request.device.info().name;
  refuse(request, *known, *known,
         [&device](const std::string& text) { return DeviceError(text, "clEnqueueNDRangeKernel", "", device); });
  return true;
}

std::unique_ptr<Kernel> KernelMaker::make(const Request& request, const Build& build, std::uint64_t* key) {
  if (is_refused(request, key)) return nullptr;
  std::unique_ptr<Kernel> kernel;
  const bool is_made = run(request, [&] {
    kernel = build();
    if (!fallbacks_.is_on()) return;  // the driver decides, at the launch
    const std::string why_not = why_not_launched(request.device, *kernel, request.geometry);
    if (why_not.empty()) return;
    const std::string& name = request.device.info().name;
    throw DeviceError("kernel " + kernel->entry() + " cannot be launched on " + name + ": " + why_not,
                      "clGetKernelWorkGroupInfo", "CL_OUT_OF_RESOURCES", name);
  });
  return is_made ? std::move(kernel) : nullptr;
}

void KernelMaker::stop_if_refused() {
  if (!refusals_.empty()) throw Refused(std::move(refusals_));
}

Moves::~Moves() {
  for (auto before = before_.rbegin(); before != before_.rend(); ++before) before->node->device = before->device;
}

void Moves::move(const Refused& refused) {
  Runtime& runtime = *context_.runtime;
  std::set<int> done;  // an op may have several launches that are refused
  for (const Refusal& refusal : refused.refusals()) {
    if (done.count(refusal.places.front()) != 0) continue;
    std::set<int> refused_by;
    for (const int place : refusal.places) {
      refused_by_[place].insert(refusal.device);
      refused_by.insert(refused_by_[place].begin(), refused_by_[place].end());
    }
    const Node& first = *list_.nodes[static_cast<std::size_t>(refusal.places.front())];
    const int target = next_device(refused_by, home_of(first));
    if (target < 0) std::rethrow_exception(refusal.error);
    if (target == runtime.spare()) runtime.open_spare();
    for (const int place : refusal.places) {
      done.insert(place);
      moved_.emplace(place, Move{refusal, target}).first->second.target = target;
      place_on(place, target);
    }
  }
}

int Moves::home_of(const Node& node) const {
  const auto first = std::find_if(before_.begin(), before_.end(), [&](const Before& b) { return b.node == &node; });
  return first == before_.end() ? node.device : first->device;
}

// The first one of the lowest rank that has not refused; -1: none.
int Moves::next_device(const std::set<int>& refused_by, int home) const {
  Runtime& runtime = *context_.runtime;
  const Space& space = runtime.device(home).space();
  const auto rank_of = [&](int d) {
    if (d == home) return 0;  // where work that was left elsewhere belongs
    if (&runtime.device(d).space() == &space) return 1;
    if (context_.options.forbid_copies) return -1;
    return runtime.device(d).info().type == "cpu" ? 2 : 3;
  };
  int best = -1;
  for (int d = 0; d < runtime.lane_count(); ++d) {
    if (refused_by.count(d) != 0 || runtime.is_given_up(d) || rank_of(d) < 0) continue;
    if (best < 0 || rank_of(d) < rank_of(best)) best = d;
  }
  return best;
}

// With its results and the views of them, which are where it is.
void Moves::place_on(int place, int device) {
  std::set<const Node*> there;
  const auto put = [&](Node& node) {
    there.insert(&node);
    before_.push_back({&node, node.device});
    node.device = device;
  };
  put(*list_.nodes[static_cast<std::size_t>(place)]);
  for (std::size_t i = static_cast<std::size_t>(place) + 1; i < list_.nodes.size(); ++i) {
    Node& node = *list_.nodes[i];
    if (node.has_value) continue;
    if (node.output >= 0 ? there.count(node.inputs[0].node.get()) != 0 : node.is_view && there.count(&node.base()) != 0)
      put(node);
  }
}

int Moves::entry_behind(int place, const std::map<int, int>& entries) const {
  std::vector<int> stack{place};
  std::set<int> met;
  while (!stack.empty()) {
    const int at = stack.back();
    stack.pop_back();
    if (at < 0 || !met.insert(at).second) continue;
    if (const auto found = entries.find(at); found != entries.end()) return found->second;
    const Node& node = *list_.nodes[static_cast<std::size_t>(at)];
    if (node.has_value) continue;
    for (const Edge& edge : node.inputs) stack.push_back(edge.node->place);
  }
  return -1;
}

std::map<int, int> Moves::entries() const {
  std::map<int, int> entries;
  for (const auto& [place, moved] : moved_) entries[place] = fallbacks_.entry_of(moved.refusal, moved.target);
  return entries;
}

std::vector<std::string> Moves::reasons(const std::map<int, int>& entries) const {
  std::vector<std::string> reasons;
  std::set<int> told;
  for (const auto& [place, entry] : entries) {
    if (!told.insert(entry).second) continue;
    const Fallback& line = fallbacks_.report()[static_cast<std::size_t>(entry)];
    reasons.push_back(line.op + " runs on " + line.ran_on + ": " + line.device + " cannot (" + line.reason + ")");
  }
  return reasons;
}

}  // namespace samebytes::detail
