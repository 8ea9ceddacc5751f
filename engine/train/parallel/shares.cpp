// How a batch is cut: by parts, by what was measured, and by what happened since.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "core/json.h"
#include "samebytes/device_watch.h"
#include "samebytes/engine.h"
#include "samebytes/error.h"
#include "train/parallel/devices.h"

namespace samebytes::train {
namespace {

constexpr int kMeasuringRounds = 4;         // of measuring, each with the shares of the one before
constexpr int kTimedSteps = 3;              // of a round, after one that builds kernels
constexpr double kSteady = 0.04;            // of a batch: shares that move less are found
constexpr double kAlike = 0.06;             // parts that differ less are equal
constexpr double kAlone = 1.1;              // a device alone may take so many times as long as all together; its steps
                                            // then do not wait for gradients, as those that are measured do
constexpr int kSlowSteps = 3;               // in a row, before a device counts as slow,
constexpr double kSlowSeconds = 0.25;       // ... and what they take: else it was another program for a moment
constexpr std::size_t kUsualSteps = 5;      // whose median is what a device usually takes
constexpr std::size_t kBalancedSteps = 10;  // from one look of --rebalance to the next
constexpr double kWorthIt = 0.95;           // new shares must promise less than this time

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

}  // namespace

const char* name_of(DeviceEvent::Kind kind) {
  switch (kind) {
    case DeviceEvent::Kind::failed: return "failed";
    case DeviceEvent::Kind::silent: return "silent";
    case DeviceEvent::Kind::slow: return "slow";
    case DeviceEvent::Kind::rebalanced: return "rebalanced";
  }
  return "";
}

std::vector<std::int64_t> cut_by_shares(std::int64_t samples, const std::vector<double>& parts, std::int64_t least) {
  const bool is_wrong =
      std::any_of(parts.begin(), parts.end(), [](double part) { return !(part >= 0) || std::isinf(part); });
  if (is_wrong || sum_of(parts) <= 0)
    throw ArgumentError(fmt::format("shares: expected none below 0 and one above, got {}", fmt::join(parts, ", ")));
  const auto cut = [&](const std::vector<double>& of) {
    const double whole = sum_of(of);
    std::vector<std::int64_t> result;
    std::vector<std::size_t> order(of.size());
    std::vector<double> rest;
    std::int64_t left = samples;
    for (const double part : of) {
      const double exact = static_cast<double>(samples) * part / whole;
      result.push_back(static_cast<std::int64_t>(std::floor(exact)));
      rest.push_back(part > 0 ? exact - std::floor(exact) : -1);
      left -= result.back();
    }
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rest[a] > rest[b]; });
    for (std::size_t i = 0; left > 0; i = (i + 1) % order.size())
      if (of[order[i]] > 0) {
        ++result[order[i]];
        --left;
      }
    return result;
  };
  std::vector<double> some = parts;
  for (;;) {  // without the smallest one that gets too few
    std::vector<std::int64_t> result = cut(some);
    std::size_t smallest = some.size();
    for (std::size_t d = 0; d < some.size(); ++d)
      if (some[d] > 0 && result[d] < least && (smallest == some.size() || some[d] <= some[smallest])) smallest = d;
    const auto used = std::count_if(some.begin(), some.end(), [](double part) { return part > 0; });
    if (smallest == some.size() || used == 1) return result;
    some[smallest] = 0;
  }
}

namespace parallel {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<std::string> Devices::names() const {
  std::vector<std::string> result;
  result.reserve(static_cast<std::size_t>(engine_->device_count()));
  for (int d = 0; d < engine_->device_count(); ++d) result.push_back(engine_->device(d).id);
  return result;
}

bool Devices::are_alike() const {
  const DeviceInfo& first = engine_->device(0);
  for (int d = 1; d < engine_->device_count(); ++d) {
    const DeviceInfo& info = engine_->device(d);
    if (info.name != first.name || info.driver != first.driver || info.cores != first.cores) return false;
  }
  return true;
}

bool Devices::are_parts_of_one() const {
  const auto whole = [](const std::string& id) { return id.substr(0, id.find('.')); };
  for (const std::string& id : names())
    if (id.find('.') == std::string::npos || whole(id) != whole(names_.front())) return false;
  return true;
}

void Devices::set_parts(std::vector<double> parts) {
  parts_ = std::move(parts);
  const std::size_t count = parts_.size();
  recent_.assign(count, {});
  usual_.assign(count, 0);
  slow_steps_.assign(count, 0);
  slow_seconds_.assign(count, 0);
  step_seconds_.clear();
}

std::vector<std::int64_t> Devices::shares(std::int64_t samples) const {
  std::vector<double> parts = parts_.empty() ? std::vector<double>(names_.size(), 1.0) : parts_;
  return cut_by_shares(samples, parts, options_.least);
}

std::string Devices::to_text(std::int64_t samples) const {
  return fmt::format("{} of {} samples on {}", fmt::join(shares(samples), " + "), samples, fmt::join(names_, ", "));
}

void Devices::find_shares(std::int64_t samples, const Job& job) {
  const std::size_t count = names_.size();
  std::vector<double> parts;
  parts.reserve(count);
  for (int d = 0; d < engine_->device_count(); ++d)
    parts.push_back(is_given_up(*engine_, d) ? 0 : static_cast<double>(engine_->device(d).cores));
  if (are_alike() || engine_->options().dry_run || samples < 2 * options_.least) return set_parts(std::move(parts));
  const Kept kept(*engine_, *net_);
  keep_one_of_shared_cores(samples, job, parts);
  set_parts(parts);
  if (only_device() >= 0) return kept.restore();
  std::vector<double> seconds(count);
  double together = 0;
  for (int round = 0; round < kMeasuringRounds; ++round) {
    together = time_of(samples, job, seconds);
    const std::vector<std::int64_t> now = shares(samples);
    std::vector<double> speeds(count);
    for (std::size_t d = 0; d < count; ++d)
      if (parts_[d] > 0 && now[d] > 0) speeds[d] = static_cast<double>(now[d]) / seconds[d];
    const auto [low, high] = std::minmax_element(speeds.begin(), speeds.end());
    if (*low > 0 && *high < *low * (1 + kAlike)) std::fill(speeds.begin(), speeds.end(), 1.0);
    const std::vector<std::int64_t> next = cut_by_shares(samples, speeds, options_.least);
    std::int64_t moved = 0;
    for (std::size_t d = 0; d < count; ++d) moved = std::max(moved, std::abs(next[d] - now[d]));
    set_parts(std::vector<double>(next.begin(), next.end()));
    if (static_cast<double>(moved) <= kSteady * static_cast<double>(samples)) break;
  }
  if (!are_parts_of_one()) {
    const std::vector<double> found = parts_;
    const auto first = std::max_element(found.begin(), found.end());
    std::vector<double> alone(count);
    alone[static_cast<std::size_t>(first - found.begin())] = 1;
    set_parts(alone);
    const double before = time_of(samples, job, seconds);
    set_parts(found);
    together = time_of(samples, job, seconds);
    if (before <= together * kAlone) set_parts(alone);
  }
  kept.restore();
}

// CPU devices that are whole and have more cores together than there are would take them from each other: of these the
// fastest one stays.
void Devices::keep_one_of_shared_cores(std::int64_t samples, const Job& job, std::vector<double>& parts) {
  std::vector<std::size_t> sharing;
  int cores = 0;
  for (std::size_t d = 0; d < parts.size(); ++d) {
    const DeviceInfo& info = engine_->device(static_cast<int>(d));
    if (parts[d] == 0 || info.type != "cpu") continue;
    sharing.push_back(d);
    cores += info.cores;
  }
  if (sharing.size() < 2 || cores <= static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))) return;
  std::size_t fastest = sharing.front();
  double least = std::numeric_limits<double>::infinity();
  std::vector<double> seconds(parts.size());
  for (const std::size_t d : sharing) {
    std::vector<double> alone(parts.size());
    alone[d] = 1;
    set_parts(alone);
    if (const double time = time_of(samples, job, seconds); time < least) {
      least = time;
      fastest = d;
    }
  }
  for (const std::size_t d : sharing)
    if (d != fastest) parts[d] = 0;
}

double Devices::time_of(std::int64_t samples, const Job& job, std::vector<double>& seconds) {
  std::vector<std::vector<double>> times(names_.size());
  std::vector<double> whole;
  for (int i = 0; i <= kTimedSteps; ++i) {
    std::vector<double> now;
    run(samples, job, &now);
    if (i == 0) continue;  // kernels are built
    for (std::size_t d = 0; d < times.size(); ++d) times[d].push_back(now[d]);
    whole.push_back(last_seconds_);
  }
  for (std::size_t d = 0; d < times.size(); ++d) seconds[d] = median(times[d]);
  return median(whole);
}

// After a step whose plan was there already.
void Devices::watch(const std::vector<Piece>& pieces, const std::vector<double>& seconds, std::int64_t samples) {
  if (samples < last_cut_) return;  // the last batch of an epoch
  last_cut_ = samples;
  for (const Piece& piece : pieces) {
    const auto d = static_cast<std::size_t>(piece.device);
    recent_[d].push_back(seconds[d] / static_cast<double>(piece.samples()));
    if (recent_[d].size() > kMostSteps) recent_[d].pop_front();
  }
  if (pieces.size() < 2) return;
  const auto times_usual = [&](const Piece& piece) {
    const auto d = static_cast<std::size_t>(piece.device);
    return usual_[d] > 0 ? recent_[d].back() / usual_[d] : 1.0;
  };
  const auto cut_anew = [&](std::size_t steps) {  // by the last steps
    std::vector<double> speeds(parts_.size());
    for (const Piece& piece : pieces) {
      const auto d = static_cast<std::size_t>(piece.device);
      const auto& recent = recent_[d];
      speeds[d] =
          1 / median({recent.end() - static_cast<std::ptrdiff_t>(std::min(steps, recent.size())), recent.end()});
    }
    const auto cut = cut_by_shares(samples, speeds, options_.least);
    return std::vector<double>(cut.begin(), cut.end());
  };
  double fastest = std::numeric_limits<double>::infinity();
  for (const Piece& piece : pieces) fastest = std::min(fastest, times_usual(piece));
  for (const Piece& piece : pieces) {
    const auto d = static_cast<std::size_t>(piece.device);
    if (usual_[d] == 0) {
      if (recent_[d].size() >= kUsualSteps) usual_[d] = median({recent_[d].begin(), recent_[d].end()});
      continue;
    }
    const double times = times_usual(piece);
    const bool is_slow = options_.slow_factor > 0 && times >= options_.slow_factor &&
                         times >= options_.slow_factor * std::max(1.0, fastest);
    slow_steps_[d] = is_slow ? slow_steps_[d] + 1 : 0;
    slow_seconds_[d] = is_slow ? slow_seconds_[d] + seconds[d] : 0;
    if (slow_steps_[d] < kSlowSteps || slow_seconds_[d] < kSlowSeconds) continue;
    set_parts(cut_anew(kSlowSteps));
    return tell(DeviceEvent::Kind::slow, piece.device,
                fmt::format("{} takes {:.1f} times as long for a sample as before; from now on {}", names_[d], times,
                            to_text(samples)));
  }
  if (!options_.rebalance || recent_[static_cast<std::size_t>(pieces[0].device)].size() < kBalancedSteps) return;
  const std::vector<double> next = cut_anew(kBalancedSteps);
  double now_seconds = 0, next_seconds = 0;
  for (const Piece& piece : pieces) {
    const auto d = static_cast<std::size_t>(piece.device);
    const double each = median({recent_[d].begin(), recent_[d].end()});
    now_seconds = std::max(now_seconds, each * static_cast<double>(piece.samples()));
    next_seconds = std::max(next_seconds, each * next[d]);
  }
  if (next_seconds > kWorthIt * now_seconds) {
    for (auto& recent : recent_) recent.clear();
    return;
  }
  set_parts(next);
  tell(DeviceEvent::Kind::rebalanced, -1, fmt::format("rebalanced: {}", to_text(samples)));
}

void Devices::give_up(const Failure& failure, std::int64_t samples) {
  const auto d = static_cast<std::size_t>(failure.device);
  try {
    give_up_device(*engine_, failure.device, failure.why);
  } catch (const ArgumentError&) {
    throw DeviceError(
        fmt::format("{} ({}) {}{}; no other device can do its work", names_[d], engine_->device(failure.device).name,
                    failure.kind == DeviceEvent::Kind::silent ? "" : "failed: ", failure.why),
        "step", "failed", names_[d]);
  }
  std::vector<double> parts = parts_;
  parts[d] = 0;
  if (sum_of(parts) <= 0)
    for (int other = 0; other < engine_->device_count(); ++other)
      parts[static_cast<std::size_t>(other)] = is_given_up(*engine_, other) ? 0 : 1;
  set_parts(std::move(parts));
  const bool is_silent = failure.kind == DeviceEvent::Kind::silent;
  tell(failure.kind, failure.device,
       fmt::format("{} {}; the step is made again, from now on with {}", names_[d],
                   is_silent ? failure.why : "failed (" + failure.why + ")", to_text(samples)));
}

void Devices::tell(DeviceEvent::Kind kind, int device, std::string text) {
  events_.push_back({kind, steps_ + 1, device, std::move(text)});
  if (listener_) listener_(events_.back());
}

std::string Devices::state() const {
  std::vector<std::string> devices;
  devices.reserve(names_.size());
  for (int d = 0; d < engine_->device_count(); ++d)
    devices.push_back(fmt::format("{} {} with {} cores", names_[static_cast<std::size_t>(d)], engine_->device(d).name,
                                  engine_->device(d).cores));
  return nlohmann::ordered_json{{"devices", devices}, {"shares", parts_}, {"samples", samples_}, {"steps", steps_}}
      .dump();
}

void Devices::load_state(const std::string& text) {
  const nlohmann::json there = detail::parse_json(text).value_or(nullptr), here = nlohmann::json::parse(state());
  if (!there.is_object() || !there.contains("devices") || !there.contains("shares") || !there.contains("samples"))
    throw ArgumentError("data parallel: not a state of shares: " + text.substr(0, 80));
  if (there["devices"] != here["devices"])
    throw ArgumentError(
        fmt::format("data parallel: the shares are of the devices {}, the engine has {}; go on with the "
                    "same ones, or begin anew",
                    there["devices"].dump(), here["devices"].dump()));
  auto parts = there["shares"].get<std::vector<double>>();
  if (!parts.empty() && parts.size() != names_.size()) throw ArgumentError("data parallel: shares and devices differ");
  for (int d = 0; d < engine_->device_count(); ++d)
    if (!parts.empty() && is_given_up(*engine_, d)) parts[static_cast<std::size_t>(d)] = 0;
  set_parts(std::move(parts));
  samples_ = there["samples"].get<std::vector<std::int64_t>>();
  steps_ = there["steps"].get<std::int64_t>();
}

}  // namespace parallel
}  // namespace samebytes::train
