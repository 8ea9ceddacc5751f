#include <fmt/format.h>

#include <array>

#include "samebytes/budget.h"

namespace samebytes {

std::string bytes_text(std::size_t bytes) {
  constexpr std::array kUnits = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  constexpr double kNext = 999.5;  // what three digits round to 1000
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; size >= kNext && unit + 1 < kUnits.size(); ++unit) size /= 1000;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.3g} {}", size, kUnits[unit]);
}

}  // namespace samebytes
