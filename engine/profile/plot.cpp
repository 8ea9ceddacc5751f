#include "samebytes/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "profile/svg.h"
#include "samebytes/error.h"

namespace samebytes {
namespace {

constexpr double kFigureWidth = 720, kFigurePanel = 200, kFigureLeft = 80, kFigureRight = 150, kFigureTop = 40,
                 kFigureGap = 30, kFigureBottom = 50;
constexpr std::array kLineColors = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b"};
constexpr const char *kFigureGrid = "#ddd", *kFigureFrame = "#888";

struct Axis {
  double low = HUGE_VAL, high = -HUGE_VAL;
  bool is_log = false;

  bool shows(double v) const { return std::isfinite(v) && (!is_log || v > 0); }
  void take(double v) {
    if (!shows(v)) return;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  // Room around what was taken; a straight axis of what is never below 0 begins there.
  void widen() {
    if (!(low <= high)) {
      low = is_log ? 1 : 0;
      high = is_log ? 10 : 1;
    } else if (is_log) {
      low /= 1.2;
      high *= 1.2;
    } else {
      low = std::min(low, 0.0);
      high += high > low ? 0.08 * (high - low) : 1;
    }
  }
  double share(double v) const { return is_log ? std::log(v / low) / std::log(high / low) : (v - low) / (high - low); }
};

std::string number(double v) {
  if (v != 0 && (std::abs(v) >= 1e6 || std::abs(v) < 1e-3)) return fmt::format("{:.3g}", v);
  return fmt::format("{:.6g}", v);
}

// Powers of ten and, where those are few, twice and five times them.
std::vector<double> log_ticks(double low, double high) {
  std::vector<double> values;
  const double decades = std::log10(high / low);
  for (double power = std::pow(10.0, std::floor(std::log10(low))); power <= high; power *= 10)
    for (const double factor : {1.0, 2.0, 5.0})
      if ((factor == 1.0 || decades < 2.5) && power * factor >= low && power * factor <= high)
        values.push_back(power * factor);
  return values;
}

}  // namespace

std::string plot_svg(const Plot& plot) {
  if (plot.panels.empty()) throw ArgumentError("plot_svg: needs at least one panel");
  const auto panels = static_cast<double>(plot.panels.size());
  const double height = kFigureTop + panels * kFigurePanel + (panels - 1) * kFigureGap + kFigureBottom;
  detail::Svg svg(kFigureWidth, height);
  svg.box(0, 0, kFigureWidth, height, "#fff");
  svg.text(kFigureWidth / 2, kFigureTop / 2, plot.title, "middle", 14);

  Axis x{.is_log = plot.is_log};
  std::set<double> xs;
  for (const PlotPanel& panel : plot.panels)
    for (const PlotSeries& series : panel.series)
      for (const auto& point : series.points) {
        x.take(point.first);
        if (x.shows(point.first)) xs.insert(point.first);
      }
  x.widen();
  const std::vector<double> x_ticks =
      plot.is_log ? std::vector<double>(xs.begin(), xs.end()) : detail::ticks(x.low, x.high, 8);
  const auto place_x = [&](double v) { return kFigureLeft + (kFigureWidth - kFigureLeft - kFigureRight) * x.share(v); };

  double top = kFigureTop;
  for (const PlotPanel& panel : plot.panels) {
    Axis y{.is_log = panel.is_log};
    for (const PlotSeries& series : panel.series)
      for (const auto& [at, value] : series.points)
        if (x.shows(at)) y.take(value);
    y.widen();
    const auto place_y = [&](double v) { return top + kFigurePanel * (1 - y.share(v)); };
    for (const double v : x_ticks) svg.line(place_x(v), top, place_x(v), top + kFigurePanel, kFigureGrid);
    for (const double v : panel.is_log ? log_ticks(y.low, y.high) : detail::ticks(y.low, y.high, 5)) {
      svg.line(kFigureLeft, place_y(v), kFigureWidth - kFigureRight, place_y(v), kFigureGrid);
      svg.text(kFigureLeft - 6, place_y(v) + 4, number(v), "end", 10);
    }
    svg.line(kFigureLeft, top, kFigureLeft, top + kFigurePanel, kFigureFrame);
    svg.line(kFigureLeft, top + kFigurePanel, kFigureWidth - kFigureRight, top + kFigurePanel, kFigureFrame);
    svg.text(kFigureLeft, top - 6, panel.y_label, "start", 11);
    std::size_t index = 0;
    for (const PlotSeries& series : panel.series) {
      const char* color = kLineColors.at(index % kLineColors.size());
      std::vector<std::pair<double, double>> points;
      for (const auto& [at, value] : series.points)
        if (x.shows(at) && y.shows(value)) points.emplace_back(place_x(at), place_y(value));
      svg.path(points, color);
      for (const auto& [at, value] : series.points)
        if (x.shows(at) && y.shows(value))
          svg.dot(place_x(at), place_y(value), 3, color,
                  fmt::format("{}: {} at {}", series.name, number(value), number(at)));
      const double line = top + 12 + 16 * static_cast<double>(index++);
      svg.line(kFigureWidth - kFigureRight + 8, line - 4, kFigureWidth - kFigureRight + 24, line - 4, color, 2);
      svg.text(kFigureWidth - kFigureRight + 28, line, series.name, "start", 10);
    }
    top += kFigurePanel + kFigureGap;
  }
  const double bottom = top - kFigureGap;
  for (const double v : x_ticks) svg.text(place_x(v), bottom + 16, number(v), "middle", 10);
  svg.text((kFigureLeft + kFigureWidth - kFigureRight) / 2, bottom + 36, plot.x_label, "middle", 11);
  return svg.finish();
}

}  // namespace samebytes
