#include "samebytes/energy.h"

#include <filesystem>
#include <fstream>

namespace samebytes {
namespace {

template <typename T>
std::optional<T> value_in(const std::filesystem::path& file) {
  std::ifstream stream(file);
  T value{};
  if (stream >> value) return value;
  return {};
}

}  // namespace

EnergyMeter::EnergyMeter(const std::string& root) {
  std::error_code error;  // a machine without the folder has no counter
  for (const auto& entry : std::filesystem::directory_iterator(root, error)) {
    // Parts of a package (cores, memory) are counted in it; psys is the whole board, packages included.
    const auto name = value_in<std::string>(entry.path() / "name");
    if (!name || !name->starts_with("package")) continue;
    const std::filesystem::path file = entry.path() / "energy_uj";
    const auto begin = value_in<std::uint64_t>(file);
    if (!begin) {  // not readable: a sum without it would be too small
      packages_.clear();
      return;
    }
    packages_.push_back(
        {file.string(), *begin, value_in<std::uint64_t>(entry.path() / "max_energy_range_uj").value_or(0)});
  }
}

std::optional<double> EnergyMeter::joules() const {
  if (!is_readable()) return {};
  double sum = 0;
  for (const Package& package : packages_) {
    const auto now = value_in<std::uint64_t>(package.file);
    if (!now || (*now < package.begin && package.begins_anew == 0)) return {};
    const std::uint64_t used =
        *now >= package.begin ? *now - package.begin : *now + package.begins_anew - package.begin;
    sum += static_cast<double>(used) * 1e-6;
  }
  return sum;
}

}  // namespace samebytes
