#include "profile/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "profile/page.h"
#include "profile/svg.h"

namespace samebytes::detail {

std::string roofline_svg(const DevicePeak& peak, const std::vector<RooflinePoint>& points, std::string_view about) {
  if (peak.gflops <= 0 || peak.gigabytes_per_second <= 0) return "";
  constexpr double kHeight = 380, kTop = 20, kBottom = 40;
  constexpr double kLeastIntensity = 1.0 / 32, kMostIntensity = 1024;
  const double most = 2 * peak.gflops, least = most / 1e5;
  const auto x_of = [&](double intensity) {
    const double v = std::clamp(intensity, kLeastIntensity, kMostIntensity);
    return kPageLeft + kPagePlot * std::log(v / kLeastIntensity) / std::log(kMostIntensity / kLeastIntensity);
  };
  const auto y_of = [&](double gflops) {
    const double v = std::clamp(gflops, least, most);
    return kTop + (kHeight - kTop - kBottom) * std::log(most / v) / std::log(most / least);
  };
  Svg svg(kPageWidth, kHeight);
  for (double v = kLeastIntensity; v <= kMostIntensity; v *= 4) {
    svg.line(x_of(v), kTop, x_of(v), kHeight - kBottom, "#e4e4e4");
    svg.text(x_of(v), kHeight - kBottom + 16, v < 1 ? fmt::format("1/{:g}", 1 / v) : fmt::format("{:g}", v), "middle");
  }
  for (double v = std::pow(10, std::ceil(std::log10(least))); v <= most; v *= 10) {
    svg.line(kPageLeft, y_of(v), kPageWidth - kPageRight, y_of(v), "#e4e4e4");
    svg.text(kPageLeft - 6, y_of(v) + 4, fmt::format("{:g} GFLOP/s", v), "end");
  }
  svg.text(kPageWidth - kPageRight, kHeight - 6, fmt::format("arithmetic a byte (FLOP/B); {}", about), "end");
  const double ridge = peak.gflops / peak.gigabytes_per_second;
  svg.path({{x_of(kLeastIntensity), y_of(kLeastIntensity * peak.gigabytes_per_second)},
            {x_of(ridge), y_of(peak.gflops)},
            {x_of(kMostIntensity), y_of(peak.gflops)}},
           "#444444");
  for (const RooflinePoint& point : points) {
    if (point.flops <= 0 || point.bytes <= 0 || point.seconds <= 0) continue;
    const double x = x_of(point.flops / point.bytes), y = y_of(point.flops / point.seconds * 1e-9);
    svg.dot(x, y, point.radius, point.color, point.tip);
    if (!point.label.empty()) svg.text(x + point.radius + 3, y + 4, point.label);
  }
  return svg.finish();
}

}  // namespace samebytes::detail
