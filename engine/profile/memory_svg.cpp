// A memory snapshot as a picture: the step's launches from left to right, what is held stacked by category; below, the
// arena with every temporary as a box; below that the history.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "profile/memory_words.h"
#include "profile/svg.h"
#include "samebytes/memory_snapshot.h"

namespace samebytes {
namespace {

using detail::in_layer;

constexpr double kSnapshotWidth = 1000, kSnapshotLeft = 80, kSnapshotRight = 20, kSnapshotTop = 40,
                 kSnapshotHeight = 320, kSnapshotBetween = 70;
constexpr double kSnapshotPlot = kSnapshotWidth - kSnapshotLeft - kSnapshotRight;
constexpr int kSnapshotColumns = 500;  // of the stacked plot; more launches are taken together by their largest
constexpr std::array<const char*, kMemoryCategories> kCategoryColors = {"#4c72b0", "#dd8452", "#55a868", "#c44e52",
                                                                        "#8172b3", "#937860", "#a0a0a0"};
constexpr const char* kSnapshotGrid = "#e0e0e0";

std::string tick_text(double bytes) {
  return bytes >= 1e9 ? fmt::format("{:.2f} GB", bytes / 1e9) : fmt::format("{:.1f} MB", bytes / 1e6);
}

class Picture {
 public:
  explicit Picture(const MemorySnapshot& s)
      : s_(s), plan_(s.plans.empty() || s.plans.front().launches.empty() ? nullptr : &s.plans.front()) {
    const int plots = (plan_ ? 2 : 0) + (s.events.empty() ? 0 : 1);
    svg_ = std::make_unique<detail::Svg>(kSnapshotWidth,
                                         kSnapshotTop + std::max(1, plots) * (kSnapshotHeight + kSnapshotBetween));
  }

  std::string write() {
    legend();
    double top = kSnapshotTop + 20;
    if (plan_) {
      step(top);
      arena(top + kSnapshotHeight + kSnapshotBetween);
      top += 2 * (kSnapshotHeight + kSnapshotBetween);
    }
    if (!s_.events.empty()) history(top);
    return svg_->finish();
  }

 private:
  void legend() {
    double x = kSnapshotLeft;
    svg_->text(kSnapshotLeft, 16,
               fmt::format("memory, {}: peak {} at {}", s_.device, tick_text(static_cast<double>(s_.report.peak_bytes)),
                           in_layer(s_.report.peak_cause, s_.report.peak_layer)),
               "start", 13);
    for (std::size_t c = 0; c < kMemoryCategories; ++c) {
      svg_->box(x, 26, 10, 10, kCategoryColors[c]);
      svg_->text(x + 14, 35, name_of(static_cast<MemoryCategory>(c)));
      x += 100;
    }
  }

  // Lines and numbers of bytes at the left; returns pixels of one byte.
  double axis(double top, double most) {
    const double scale = kSnapshotHeight / std::max(1.0, most);
    for (const double tick : detail::ticks(0, most, 5)) {
      const double y = top + kSnapshotHeight - tick * scale;
      svg_->line(kSnapshotLeft, y, kSnapshotLeft + kSnapshotPlot, y, kSnapshotGrid);
      svg_->text(kSnapshotLeft - 6, y + 4, tick_text(tick), "end");
    }
    return scale;
  }

  void under(double top, double last, const char* unit) {
    for (const double tick : detail::ticks(0, last, 8))
      svg_->text(kSnapshotLeft + kSnapshotPlot * tick / std::max(last, 1e-12), top + kSnapshotHeight + 16,
                 fmt::format("{:g}", tick), "middle");
    svg_->text(kSnapshotLeft + kSnapshotPlot / 2, top + kSnapshotHeight + 32, unit, "middle");
  }

  MemoryByCategory at(std::size_t launch) const {
    MemoryByCategory bytes = s_.step;
    const MemoryLaunch& top = plan_->launches[static_cast<std::size_t>(plan_->peak_launch())];
    auto& gradients = bytes[MemoryCategory::gradients];
    gradients -= std::min(gradients, top.gradients);
    gradients += plan_->launches[launch].gradients;
    bytes[MemoryCategory::activations] = plan_->launches[launch].activations;
    return bytes;
  }

  void step(double top) {
    const std::size_t count = plan_->launches.size(), columns = std::min<std::size_t>(count, kSnapshotColumns);
    const auto peak = static_cast<std::size_t>(plan_->peak_launch());
    const double scale = axis(top, static_cast<double>(at(peak).total()) * 1.08),
                 width = kSnapshotPlot / static_cast<double>(columns);
    for (std::size_t column = 0; column < columns; ++column) {
      const std::size_t begin = column * count / columns, end = (column + 1) * count / columns;
      std::size_t largest = begin;
      for (std::size_t i = begin; i < end; ++i)
        if (at(i).total() > at(largest).total()) largest = i;
      const MemoryByCategory bytes = at(largest);
      const MemoryLaunch& launch = plan_->launches[largest];
      double y = top + kSnapshotHeight;
      for (std::size_t c = 0; c < kMemoryCategories; ++c) {
        if (bytes.bytes[c] == 0) continue;
        const double height = static_cast<double>(bytes.bytes[c]) * scale;
        y -= height;
        svg_->box(kSnapshotLeft + width * static_cast<double>(column), y, width, height, kCategoryColors[c],
                  fmt::format("launch {}: {}, {}, {} of {}", largest, in_layer(launch.op, launch.layer),
                              name_of(static_cast<MemoryCategory>(c)), tick_text(static_cast<double>(bytes.bytes[c])),
                              tick_text(static_cast<double>(bytes.total()))));
      }
    }
    const MemoryLaunch& launch = plan_->launches[peak];
    const double x = kSnapshotLeft + kSnapshotPlot * (static_cast<double>(peak) + 0.5) / static_cast<double>(count);
    svg_->line(x, top, x, top + kSnapshotHeight, "#222222");
    svg_->text(x + (x < kSnapshotLeft + kSnapshotPlot / 2 ? 4 : -4), top + 4,
               fmt::format("peak {}: {}, launch {}", tick_text(static_cast<double>(at(peak).total())),
                           in_layer(launch.op, launch.layer), peak),
               x < kSnapshotLeft + kSnapshotPlot / 2 ? "start" : "end");
    under(top, static_cast<double>(count), "launches of the step");
  }

  void arena(double top) {
    double bytes = 0;
    std::vector<double> start;  // of each segment, one above the other
    for (const MemoryTemporary& t : plan_->temporaries) {
      if (static_cast<std::size_t>(t.segment) >= start.size()) start.resize(static_cast<std::size_t>(t.segment) + 1);
      start[static_cast<std::size_t>(t.segment)] =
          std::max(start[static_cast<std::size_t>(t.segment)], static_cast<double>(t.offset + t.bytes));
    }
    for (double& one : start) bytes += std::exchange(one, bytes);
    const double scale = axis(top, bytes), width = kSnapshotPlot / static_cast<double>(plan_->launches.size());
    for (const MemoryTemporary& t : plan_->temporaries) {
      const double low = start[static_cast<std::size_t>(t.segment)] + static_cast<double>(t.offset);
      const double height = static_cast<double>(t.bytes) * scale;
      if (height < 0.2) continue;
      svg_->box(kSnapshotLeft + width * t.first, top + kSnapshotHeight - low * scale - height,
                width * (t.last - t.first + 1), std::max(0.2, height - 0.3),
                kCategoryColors[static_cast<std::size_t>(t.category)],
                fmt::format("{}, {}, launches {} to {}", in_layer(t.op, t.layer),
                            tick_text(static_cast<double>(t.bytes)), t.first, t.last));
    }
    under(top, static_cast<double>(plan_->launches.size()), "places of temporaries in the arena");
  }

  // Lines of what was taken since the history began, by category one above the other.
  void history(double top) {
    std::array<std::int64_t, kMemoryCategories> now{};
    double most = 1, low = 0;
    std::array<std::vector<std::pair<double, std::int64_t>>, kMemoryCategories> lines;
    for (const MemoryEvent& event : s_.events) {
      now[static_cast<std::size_t>(event.category)] += event.bytes;
      std::int64_t sum = 0;
      for (std::size_t c = 0; c < kMemoryCategories; ++c) {
        sum += now[c];
        lines[c].emplace_back(event.seconds, sum);
        low = std::min(low, static_cast<double>(sum));
      }
      most = std::max(most, static_cast<double>(sum));
    }
    const double scale = axis(top, most - low), seconds = std::max(1e-9, s_.events.back().seconds);
    for (std::size_t c = 0; c < kMemoryCategories; ++c) {
      std::vector<std::pair<double, double>> points;
      for (const auto& [at, sum] : lines[c]) {
        const double x = kSnapshotLeft + kSnapshotPlot * at / seconds;
        if (!points.empty()) points.emplace_back(x, points.back().second);
        points.emplace_back(x, top + kSnapshotHeight - (static_cast<double>(sum) - low) * scale);
      }
      svg_->path(points, kCategoryColors[c]);
    }
    under(top, seconds, "seconds; bytes taken since the history began, sums by category");
  }

  const MemorySnapshot& s_;
  const MemoryPlan* plan_;
  std::unique_ptr<detail::Svg> svg_;
};

}  // namespace

std::string memory_svg(const MemorySnapshot& snapshot) { return Picture(snapshot).write(); }

}  // namespace samebytes
