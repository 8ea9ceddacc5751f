// Plots of curves as SVG, a file that needs nothing else: panels below each other that share their x axis.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace samebytes {

struct PlotSeries {
  std::string name = {};
  std::vector<std::pair<double, double>> points = {};  // x, y; those that cannot be drawn (not finite, or not above 0
                                                       // on a logarithmic axis) are left out
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
