// The tuner as a whole: groups one after the other in a time box, and the store written after each.
#include "samebytes/tune.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>

#include "graph/context.h"
#include "runtime/runtime.h"
#include "samebytes/error.h"
#include "samebytes/io/files.h"
#include "tune/search.h"

namespace samebytes {
namespace {

using Clock = std::chrono::steady_clock;
using detail::Tunable;
using detail::Values;

struct Group {
  const char* name;
  double share;  // of the time box
};
constexpr Group kGroups[] = {{"gemm", 0.3}, {"conv", 0.35}, {"clblast", 0.35}};

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

DeviceInfo device_of(const std::string& device) { return Engine({.device = device, .tuning = ""}).device(); }

detail::TuningStore read_store(const std::string& path, const DeviceInfo& info) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return {};
  const std::vector<std::byte> bytes = io::read_file(path);
  std::string foreign;  // a store of another driver is replaced
  return detail::parse_tuning({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path, info, &foreign);
}

enum class Rows { all, found };

std::vector<TuningChoice> choices_of(const Values& values, const DeviceInfo& info, Rows rows) {
  std::vector<TuningChoice> choices;
  for (const Tunable& row : detail::tunables(info.personality)) {
    const std::int64_t built_in =
        detail::built_in_value(row, info.personality, detail::vector_width_of(info, Dtype::f32));
    const auto found = values.find(row.key);
    if (rows == Rows::found && found == values.end()) continue;
    choices.push_back({row.key, row.value_text(found == values.end() ? built_in : found->second),
                       row.value_text(built_in), row.legal_text()});
  }
  return choices;
}

double rounded(double milliseconds) { return std::round(milliseconds * 1e4) / 1e4; }

class Tuner {
 public:
  explicit Tuner(const TuneOptions& options) : options_(options), info_(device_of(options.device)) {
    for (const std::string& name : options.only)
      if (std::none_of(std::begin(kGroups), std::end(kGroups), [&](const Group& group) { return name == group.name; }))
        throw ArgumentError("tune: only takes gemm, conv and clblast, got \"" + name + "\"");
    if (!(options.seconds > 0))
      throw ArgumentError("tune: seconds must be more than 0, got " + std::to_string(options.seconds));
    report_.device = info_.id + " " + info_.name;
    report_.file = detail::tuning_path(info_);
    store_ = read_store(report_.file, info_);
    if (!options.dry_run && report_.file.empty())
      throw ArgumentError(
          "tune: there is no place for a store: SAMEBYTES_TUNING is off, or neither XDG_CACHE_HOME nor "
          "HOME is set");
  }

  TuneReport run() {
    double all = 0, done = 0;
    for (const Group& group : kGroups)
      if (is_wanted(group)) all += group.share;
    for (const Group& group : kGroups) {
      if (!is_wanted(group) || report_.is_interrupted) continue;
      done += group.share;
      last_ = done / all;
      tune_group(group.name);
    }
    report_.seconds = seconds();
    report_.hash = detail::Tuning(info_.personality, store_.values).hash();
    report_.found = choices_of(store_.values, info_, Rows::found);
    return report_;
  }

 private:
  // CLBlast compiles each set of parameters for many seconds on a CPU.
  bool is_wanted(const Group& group) const {
    const std::string name = group.name;
    if (!options_.only.empty())
      return std::find(options_.only.begin(), options_.only.end(), name) != options_.only.end();
    return !(name == "clblast" && options_.rapid && info_.type == "cpu");
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  bool go_on(const std::string& what) {
    if (!what.empty()) what_ = what;
    if (options_.progress && !options_.progress({what_, std::min(1.0, seconds() / options_.seconds), seconds()}))
      report_.is_interrupted = true;
    return !report_.is_interrupted;
  }

  void tune_group(const std::string& name) {
    const auto is_of_group = [&](const std::string& key) {
      const Tunable* row = detail::find_tunable(info_.personality, key);
      return row && row->group == name;
    };
    Values fixed = store_.values;
    std::erase_if(fixed, [&](const auto& value) { return is_of_group(value.first); });
    detail::Search search(
        {.device = info_.id, .rapid = options_.rapid, .go_on = [this](const std::string& what) { return go_on(what); }},
        fixed);
    const auto deadline =
        start_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.seconds * last_));
    const std::size_t before = report_.problems.size();
    const Values found = search.run(name, deadline, report_);

    store_.values = fixed;
    store_.values.insert(found.begin(), found.end());
    std::erase_if(store_.measured, [&](const detail::TunedRow& row) { return row.group == name; });
    for (std::size_t i = before; i < report_.problems.size(); ++i) {
      const TunedProblem& row = report_.problems[i];
      store_.measured.push_back({row.group, row.kernel, row.shape, rounded(row.built_in_ms), rounded(row.best_ms)});
    }
    store_.date = today();
    if (options_.dry_run) return;
    std::filesystem::create_directories(std::filesystem::path(report_.file).parent_path());
    io::write_file(report_.file, detail::tuning_text(store_, info_));
    report_.is_written = true;
  }

  const TuneOptions& options_;
  const DeviceInfo info_;
  const Clock::time_point start_ = Clock::now();
  detail::TuningStore store_;
  TuneReport report_;
  double last_ = 1;  // share of the time box at which the group under way ends
  std::string what_;
};

}  // namespace

TuneReport tune(const TuneOptions& options) { return Tuner(options).run(); }

std::string tuning_file(const std::string& device) { return detail::tuning_path(device_of(device)); }

std::vector<TuningChoice> tuning_table(const std::string& device) {
  const Engine engine({.device = device});
  return choices_of(engine.context()->runtime->device().tuning().values(), engine.device(), Rows::all);
}

bool reset_tuning(const std::string& device) {
  const std::string path = tuning_file(device);
  std::error_code failed;
  const bool removed = !path.empty() && std::filesystem::remove(path, failed);
  if (failed) throw IoError("tune: " + path + " cannot be removed: " + failed.message(), path);
  return removed;
}

}  // namespace samebytes
