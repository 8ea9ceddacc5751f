// The memory that the system still offers this process: the limit of arrays follows it, and the guard against memory
// pressure looks at it. Reads /proc and the control groups; no state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <optional>
#include <string>

namespace samebytes::detail {

inline std::optional<std::size_t> first_number_in(const std::string& path) {
  std::ifstream file(path);
  std::size_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;  // "max" is not a number
}

inline std::optional<std::size_t> number_after(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::size_t number = 0;
  for (std::string word; file >> word;)
    if (word == name && file >> number) return number;
  return std::nullopt;
}

// Calls visit(folder, is_second) for each control group that limits the memory of this process, of version 2
// ("0::/a/b") or 1 ("4:memory:/a/b").
template <class Visit>
void for_each_memory_group(const Visit& visit) {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const bool is_second = line.rfind("0::", 0) == 0;
    if (!is_second && line.find(":memory:") == std::string::npos) continue;
    const std::string root = is_second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (std::string group = line.substr(line.rfind(':') + 1);; group = group.substr(0, group.rfind('/'))) {
      visit(root + group + "/", is_second);
      if (group.empty() || group == "/") break;
    }
  }
}

inline std::optional<std::size_t> limit_of_group(const std::string& folder, bool is_second) {
  constexpr std::size_t kUnlimited = std::size_t{1} << 60;  // version 1 writes a huge number for "none"
  const auto limit = first_number_in(folder + (is_second ? "memory.max" : "memory.limit_in_bytes"));
  return limit && *limit < kUnlimited ? limit : std::nullopt;
}

// The least of what the machine has free and of what each group that this process is in may still take, pages that can
// be dropped included. Empty if nothing is known.
inline std::optional<std::size_t> available_memory() {
  std::optional<std::size_t> least;
  const auto offer = [&](std::size_t bytes) { least = std::min(least.value_or(bytes), bytes); };
  if (const auto kibibytes = number_after("/proc/meminfo", "MemAvailable:")) offer(*kibibytes * 1024);
  for_each_memory_group([&](const std::string& folder, bool is_second) {
    const auto limit = limit_of_group(folder, is_second);
    const auto use = first_number_in(folder + (is_second ? "memory.current" : "memory.usage_in_bytes"));
    if (!limit || !use) return;
    const auto droppable = number_after(folder + "memory.stat", is_second ? "inactive_file" : "total_inactive_file");
    offer(*limit - std::min(*limit, *use - std::min(*use, droppable.value_or(0))));
  });
  return least;
}

// The memory that this process can have at most, whatever is in use: the least of the machine's and its groups' limits.
// Empty if nothing is known.
inline std::optional<std::size_t> most_memory() {
  std::optional<std::size_t> least;
  if (const auto kibibytes = number_after("/proc/meminfo", "MemTotal:")) least = *kibibytes * 1024;
  for_each_memory_group([&](const std::string& folder, bool is_second) {
    if (const auto limit = limit_of_group(folder, is_second)) least = std::min(least.value_or(*limit), *limit);
  });
  return least;
}

}  // namespace samebytes::detail
