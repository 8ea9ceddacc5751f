// Just enough SVG for the plots of a report: text, lines, boxes, and an axis that people can read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace samebytes::detail {

std::string escaped(std::string_view text);  // for XML

class Svg {
 public:
  Svg(double width, double height);
  void box(double x, double y, double width, double height, std::string_view color, std::string_view tip = {});
  void line(double x1, double y1, double x2, double y2, std::string_view color, double width = 1);
  void path(const std::vector<std::pair<double, double>>& points, std::string_view color, double width = 1.5);
  void dot(double x, double y, double radius, std::string_view color, std::string_view tip = {});
  // anchor: start, middle or end.
  void text(double x, double y, std::string_view text, std::string_view anchor = "start", double size = 11);
  std::string finish() const;

 private:
  std::string body_;
  double width_, height_;
};

// About `count` round numbers in [low, high], such as 0, 5, 10.
std::vector<double> ticks(double low, double high, int count);

}  // namespace samebytes::detail
