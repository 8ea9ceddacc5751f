// Plots curves as one self-contained SVG: panels below each other with a common x axis.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace samebytes {

struct PlotSeries {
  std::string name = {};
  std::vector<std::pair<double, double>> points = {};  // x, y; skips what an axis cannot show (NaN, log of 0)
};

struct PlotPanel {
  std::string y_label = {};
  std::vector<PlotSeries> series = {};
  bool is_log = false;  // the y axis
};

struct Plot {
  std::string title = {};
  std::string x_label = {};
  bool is_log = false;  // the x axis, with a tick at each point's x
  std::vector<PlotPanel> panels = {};
};

// Throws ArgumentError for a plot without panels.
std::string plot_svg(const Plot& plot);

}  // namespace samebytes
