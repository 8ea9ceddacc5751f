#include "samebytes/cores.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>
#include <optional>

#include "samebytes/error.h"

namespace samebytes {
namespace {

constexpr double kOneClass = 0.85;  // of the class's fastest core: boost clocks differ by a few per cent among equals
constexpr int kMostCores = 8192;

std::optional<double> positive_number_in(const std::string& path) {
  std::ifstream file(path);
  double number = 0;
  if (!(file >> number) || !(number > 0)) return {};
  return number;
}

// Parses "0-3,8"; nullopt if it is not such a list.
std::optional<std::vector<int>> parse_list(std::string_view text) {
  std::vector<int> cores;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    int first = 0;
    const char* const end = part.data() + part.size();
    auto [stop, error] = std::from_chars(part.data(), end, first);
    int last = first;
    if (error == std::errc() && stop != end && *stop == '-') {
      const auto rest = std::from_chars(stop + 1, end, last);
      stop = rest.ptr;
      error = rest.ec;
    }
    if (error != std::errc() || stop != end || first < 0 || last < first || last >= kMostCores) return {};
    for (int core = first; core <= last; ++core) cores.push_back(core);
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  return cores;
}

std::optional<std::vector<int>> list_in(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  if (!(file >> text)) return {};
  return parse_list(text);
}

using CapacityOf = std::function<std::optional<double>(int core)>;

// Classes by capacity; empty if a core has none.
std::vector<CoreClass> classes_by(std::span<const int> cores, const CapacityOf& capacity_of) {
  struct Core {
    int number;
    double capacity;
  };
  std::vector<Core> all;
  for (const int core : cores) {
    const std::optional<double> capacity = capacity_of(core);
    if (!capacity) return {};
    all.push_back({core, *capacity});
  }
  std::stable_sort(all.begin(), all.end(), [](const Core& a, const Core& b) { return a.capacity > b.capacity; });
  std::vector<CoreClass> classes;
  double fastest = 0;
  for (const Core& core : all) {
    if (classes.empty() || core.capacity < kOneClass * fastest) {
      classes.push_back({{}, core.capacity / all.front().capacity});
      fastest = core.capacity;
    }
    classes.back().cores.push_back(core.number);
  }
  for (CoreClass& one : classes) std::sort(one.cores.begin(), one.cores.end());
  return classes;
}

}  // namespace

std::vector<int> allowed_cores() {
  std::vector<int> cores;
  // The kernel rejects a set that is smaller than its own.
  for (int count = 1024; count <= kMostCores; count *= 2) {
    cpu_set_t* const set = CPU_ALLOC(count);
    const std::size_t bytes = CPU_ALLOC_SIZE(count);
    CPU_ZERO_S(bytes, set);
    const bool is_known = sched_getaffinity(0, bytes, set) == 0;
    for (int core = 0; is_known && core < count; ++core)
      if (CPU_ISSET_S(core, bytes, set)) cores.push_back(core);
    CPU_FREE(set);
    if (is_known || errno != EINVAL) break;
  }
  return cores.empty() ? std::vector<int>{0} : cores;
}

std::string core_list_text(std::span<const int> cores) {
  std::string text;
  for (std::size_t begin = 0; begin < cores.size();) {
    std::size_t end = begin + 1;
    while (end < cores.size() && cores[end] == cores[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cores[begin]);
    if (end - begin > 1) text += fmt::format("{}{}", end - begin > 2 ? "-" : ",", cores[end - 1]);
    begin = end;
  }
  return text;
}

std::string CoreTopology::to_text() const {
  std::string text;
  for (const CoreClass& one : classes)
    text += text.empty()
                ? fmt::format("{} {} of capacity {:.2g} ({})", one.cores.size(),
                              one.cores.size() == 1 ? "core" : "cores", one.capacity, core_list_text(one.cores))
                : fmt::format(", {} of {:.2g} ({})", one.cores.size(), one.capacity, core_list_text(one.cores));
  return source.empty() ? text : text + ", by " + source;
}

CoreTopology core_topology(const std::string& root) { return core_topology(root, allowed_cores()); }

CoreTopology core_topology(const std::string& root, std::span<const int> allowed) {
  const auto number_of = [&](const char* file) {
    return
        [&root, file](int core) { return positive_number_in(fmt::format("{}/system/cpu/cpu{}/{}", root, core, file)); };
  };
  if (auto classes = classes_by(allowed, number_of("cpu_capacity")); !classes.empty())
    return {std::move(classes), "cpu_capacity"};
  const auto fast = list_in(root + "/cpu_core/cpus"), slow = list_in(root + "/cpu_atom/cpus");
  if (fast && slow) {
    constexpr double kAtom = 0.6;  // rough capacity relative to a core, if nothing else is known
    const auto has = [](const std::vector<int>& list, int core) {
      return std::binary_search(list.begin(), list.end(), core);
    };
    auto classes = classes_by(allowed, [&](int core) -> std::optional<double> {
      if (has(*fast, core)) return 1.0;
      return has(*slow, core) ? std::optional(kAtom) : std::nullopt;
    });
    if (!classes.empty()) return {std::move(classes), "cpu_core and cpu_atom"};
  }
  if (auto classes = classes_by(allowed, number_of("cpufreq/cpuinfo_max_freq")); !classes.empty())
    return {std::move(classes), "cpuinfo_max_freq"};
  return {{{std::vector<int>(allowed.begin(), allowed.end()), 1.0}}, ""};
}

std::vector<int> choose_cores(const CoreTopology& topology, std::string_view choice) {
  if (choice == "all") return {};
  if (choice == "efficiency" || choice == "performance") {
    if (topology.classes.size() < 2) return {};
    return choice == "efficiency" ? topology.classes.back().cores : topology.classes.front().cores;
  }
  const auto cores = parse_list(choice);
  if (!cores || cores->empty())
    throw ArgumentError("cores: expected efficiency, performance, all or a list such as 0,2-3, got '" +
                        std::string(choice) + "'");
  std::vector<int> allowed;
  for (const CoreClass& one : topology.classes) allowed.insert(allowed.end(), one.cores.begin(), one.cores.end());
  std::sort(allowed.begin(), allowed.end());
  for (const int core : *cores)
    if (!std::binary_search(allowed.begin(), allowed.end(), core))
      throw ArgumentError(fmt::format("cores: the process may use {}, got core {}", core_list_text(allowed), core));
  return *cores;
}

void run_this_thread_on(std::span<const int> cores) {
  const int count = cores.empty() ? 1 : 1 + *std::max_element(cores.begin(), cores.end());
  cpu_set_t* const set = CPU_ALLOC(count);
  const std::size_t bytes = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(bytes, set);
  for (const int core : cores) CPU_SET_S(core, bytes, set);
  const int status = sched_setaffinity(0, bytes, set) == 0 ? 0 : errno;
  CPU_FREE(set);
  if (status != 0)
    throw ArgumentError("cores: this thread cannot run on " + core_list_text(cores) + ": " + std::strerror(status));
}

}  // namespace samebytes
