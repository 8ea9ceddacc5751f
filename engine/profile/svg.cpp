#include "profile/svg.h"

#include <fmt/format.h>

#include <cmath>

namespace samebytes::detail {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

Svg::Svg(double width, double height) : width_(width), height_(height) {}

void Svg::box(double x, double y, double width, double height, std::string_view color, std::string_view tip) {
  body_ += fmt::format(R"(<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" fill="{}")", x, y, width, height,
                       color);
  body_ += tip.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", escaped(tip));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view color, double width) {
  body_ += fmt::format(R"(<line x1="{:.2f}" y1="{:.2f}" x2="{:.2f}" y2="{:.2f}" stroke="{}" stroke-width="{}"/>)"
                       "\n",
                       x1, y1, x2, y2, color, width);
}

void Svg::path(const std::vector<std::pair<double, double>>& points, std::string_view color, double width) {
  if (points.empty()) return;
  std::string list;
  for (const auto& [x, y] : points) list += fmt::format("{:.2f},{:.2f} ", x, y);
  body_ += fmt::format(R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="{}"/>)"
                       "\n",
                       list, color, width);
}

void Svg::dot(double x, double y, double radius, std::string_view color, std::string_view tip) {
  body_ += fmt::format(R"(<circle cx="{:.2f}" cy="{:.2f}" r="{:.2f}" fill="{}" fill-opacity="0.7">)"
                       "<title>{}</title></circle>\n",
                       x, y, radius, color, escaped(tip));
}

void Svg::text(double x, double y, std::string_view text, std::string_view anchor, double size) {
  body_ += fmt::format(R"(<text x="{:.2f}" y="{:.2f}" text-anchor="{}" font-size="{}">{}</text>)"
                       "\n",
                       x, y, anchor, size, escaped(text));
}

std::string Svg::finish() const {
  return fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" )"
                     R"(font-family="sans-serif" fill="#222">)"
                     "\n{2}</svg>\n",
                     width_, height_, body_);
}

std::vector<double> ticks(double low, double high, int count) {
  if (!(high > low)) return {low};
  const double raw = (high - low) / std::max(1, count);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = factor * power;
    if (step >= raw) break;
  }
  std::vector<double> values;
  for (double v = std::ceil(low / step) * step; v <= high * (1 + 1e-12); v += step) values.push_back(v);
  return values;
}

}  // namespace samebytes::detail
