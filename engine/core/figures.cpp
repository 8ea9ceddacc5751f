#include "samebytes/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace samebytes {

std::string bytes_text(std::size_t bytes) {
  constexpr std::array kUnits = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  constexpr double kNext = 999.5;  // what three digits round to 1000
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; size >= kNext && unit + 1 < kUnits.size(); ++unit) size /= 1000;
  if (unit > 0) return fmt::format("{:.3g} {}", size, kUnits[unit]);
  return bytes == 1 ? "1 byte" : fmt::format("{} bytes", bytes);
}

std::string count_text(double count) {
  if (!std::isfinite(count)) return "-";
  if (std::abs(count) < 100) return fmt::format("{:.3g}", count);
  std::string digits = fmt::format("{:.0f}", count);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t end = digits.size(); end > first + 3;) {
    end -= 3;
    digits.insert(end, " ");
  }
  return digits;
}

std::string counted_text(double count, std::string_view one) {
  const bool hisses = one.ends_with("ch") || one.ends_with("s") || one.ends_with("x");
  return fmt::format("{} {}{}", count_text(count), one, count == 1 ? "" : hisses ? "es" : "s");
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  if (seconds < 10) return fmt::format("{:.2f} s", seconds);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

void TextTable::add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

std::string TextTable::to_text() const {
  std::vector<std::size_t> widths(columns_.size());
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths.at(i) = std::max(widths.at(i), row[i].size());
  std::string text;
  for (const auto& row : rows_) {
    std::string line(indent_, ' ');
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(widths[i] - row[i].size(), ' ');
      line += (i > 0 ? "  " : "") + (columns_[i] == 'r' ? gap + row[i] : row[i] + gap);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace samebytes
