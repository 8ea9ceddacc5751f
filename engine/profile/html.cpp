// The report of a profile: one page that needs nothing else.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "profile/page.h"
#include "profile/roofline.h"
#include "profile/svg.h"
#include "samebytes/profile.h"

namespace samebytes {
namespace {

using detail::escaped;
using detail::section;
using detail::Svg;

constexpr const char* kForwardColor = "#3b76b0";
constexpr const char* kGradientColor = "#d98032";
constexpr const char* kHostColor = "#6a9f58";
constexpr const char* kWaitingColor = "#dddddd";
constexpr const char* kAxisColor = "#999999";
constexpr std::size_t kMostRows = 20;

double last_end(const std::vector<const ProfiledLaunch*>& launches) {
  double end = 0;
  for (const ProfiledLaunch* launch : launches) end = std::max(end, launch->start + launch->seconds);
  return end;
}

// The step in the middle: the first one may still wait for a batch.
std::vector<const ProfiledLaunch*> one_step(const Profile& profile) {
  std::vector<const ProfiledLaunch*> launches;
  for (const ProfiledLaunch& launch : profile.launches)
    if (launch.step == profile.steps / 2) launches.push_back(&launch);
  return launches;
}

void time_axis(Svg& svg, double begin, double end, double height) {
  for (const double ms : detail::ticks(0, 1e3 * (end - begin), 8)) {
    const double x = detail::kPageLeft + detail::kPagePlot * ms * 1e-3 / (end - begin);
    svg.line(x, 10, x, height - 22, "#e4e4e4");
    svg.text(x, height - 8, fmt::format("{:g} ms", ms), "middle");
  }
}

// Time of each layer, forward and gradient apart.
std::string layers_plot(const Profile& profile) {
  std::map<std::string, std::pair<double, double>> parts;
  for (const ProfiledLaunch& launch : profile.launches) {
    auto& [forward, gradient] = parts[launch.layer.empty() ? "(no layer)" : launch.layer];
    (launch.is_gradient ? gradient : forward) += launch.seconds;
  }
  std::vector<ProfileRow> rows = profile_rows(profile, ProfileBy::layer);
  if (rows.empty()) return "";
  if (rows.size() > kMostRows) rows.resize(kMostRows);
  const double steps = std::max(1, profile.steps), longest = rows.front().seconds / steps;
  const double row_height = 18, height = 40 + row_height * static_cast<double>(rows.size());
  Svg svg(detail::kPageWidth, height);
  time_axis(svg, 0, longest, height);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto [forward, gradient] = parts[rows[i].name];
    const double y = 12 + row_height * static_cast<double>(i), scale = detail::kPagePlot / longest / steps;
    svg.text(detail::kPageLeft - 6, y + 11, rows[i].name, "end");
    svg.box(detail::kPageLeft, y, forward * scale, row_height - 4, kForwardColor,
            fmt::format("forward {:.3f} ms", 1e3 * forward / steps));
    svg.box(detail::kPageLeft + forward * scale, y, gradient * scale, row_height - 4, kGradientColor,
            fmt::format("gradient {:.3f} ms", 1e3 * gradient / steps));
  }
  return svg.finish();
}

// Each kind of launch.
std::string roofline_plot(const Profile& profile) {
  std::vector<detail::RooflinePoint> points;
  for (const ProfileRow& row : profile_rows(profile, ProfileBy::op)) {
    const double gflops = row.seconds > 0 ? row.flops / row.seconds * 1e-9 : 0;
    points.push_back({row.flops, row.bytes, row.seconds, 3 + 22 * std::sqrt(row.share), kForwardColor,
                      fmt::format("{}: {:.1f} % of the time, {:.1f} GFLOP/s, {:.1f} GB/s", row.name, 100 * row.share,
                                  gflops, row.bytes / std::max(row.seconds, 1e-12) * 1e-9)});
  }
  return detail::roofline_svg(profile.peak, points, "a dot is a kind of launch, its area its time");
}

// One step: what each thread did, what each device did, and the memory that was alive.
std::string timeline_plot(const Profile& profile) {
  const std::vector<const ProfiledLaunch*> launches = one_step(profile);
  if (launches.empty()) return "";
  const double begin = launches.front()->start, end = last_end(launches);
  std::map<std::string, std::vector<const ProfiledSpan*>> lanes;
  for (const ProfiledSpan& span : profile.spans)
    if (span.start < end && span.start + span.seconds > begin) lanes[span.lane].push_back(&span);
  constexpr double kLane = 26, kMemory = 120;
  const double count = static_cast<double>(lanes.size() + profile.devices.size());
  const double height = 20 + kLane * count + kMemory + 40;
  Svg svg(detail::kPageWidth, height);
  time_axis(svg, begin, end, height);
  const auto x_of = [&](double t) {
    return detail::kPageLeft + detail::kPagePlot * (std::clamp(t, begin, end) - begin) / (end - begin);
  };
  const auto bar = [&](double start, double seconds, double y, const char* color, const std::string& tip) {
    svg.box(x_of(start), y, std::max(0.3, x_of(start + seconds) - x_of(start)), kLane - 8, color, tip);
  };
  double y = 12;
  for (const auto& [lane, spans] : lanes) {
    svg.text(detail::kPageLeft - 6, y + 13, lane, "end");
    for (const ProfiledSpan* span : spans)
      bar(span->start, span->seconds, y, span->name.starts_with("wait") ? kWaitingColor : kHostColor,
          fmt::format("{} {:.3f} ms", span->name, 1e3 * span->seconds));
    y += kLane;
  }
  for (std::size_t d = 0; d < profile.devices.size(); ++d) {
    svg.text(detail::kPageLeft - 6, y + 13, fmt::format("device {}", d), "end");
    for (const ProfiledLaunch* launch : launches)
      if (launch->device == static_cast<int>(d))
        bar(launch->start, launch->seconds, y, launch->is_gradient ? kGradientColor : kForwardColor,
            fmt::format("{} {} {} {:.3f} ms", launch->op, launch->layer, launch->shape, 1e3 * launch->seconds));
    y += kLane;
  }
  std::size_t most = 1;
  for (const ProfiledLaunch* launch : launches) most = std::max(most, launch->live_bytes);
  std::vector<std::pair<double, double>> curve;
  const auto level = [&](std::size_t bytes) {
    return y + 10 + (kMemory - 10) * (1 - static_cast<double>(bytes) / static_cast<double>(most));
  };
  for (const ProfiledLaunch* launch : launches) {
    if (!curve.empty()) curve.emplace_back(x_of(launch->start), curve.back().second);
    curve.emplace_back(x_of(launch->start), level(launch->live_bytes));
  }
  curve.emplace_back(x_of(end), curve.back().second);
  svg.line(detail::kPageLeft, level(0), detail::kPageWidth - detail::kPageRight, level(0), kAxisColor);
  svg.path(curve, "#7a4fa3");
  svg.text(detail::kPageLeft - 6, level(most) + 4, fmt::format("{:.1f} MB alive", static_cast<double>(most) * 1e-6),
           "end");
  svg.text(detail::kPageLeft - 6, level(0) + 4, "0", "end");
  return svg.finish();
}

std::string table_html(const Profile& profile, ProfileBy by, const char* heading) {
  std::string html = fmt::format(
      "<table><tr><th>{}</th><th>a step</th><th>ms a step</th><th>share</th>"
      "<th>GFLOP/s</th><th>GB/s</th><th>of bound</th></tr>\n",
      heading);
  const double steps = std::max(1, profile.steps);
  for (const ProfileRow& row : profile_rows(profile, by)) {
    const double seconds = std::max(row.seconds, 1e-12);
    const std::string bound = row.share_of_bound > 0 ? fmt::format("{:.0f} %", 100 * row.share_of_bound) : "";
    html += fmt::format(
        "<tr><td>{}</td><td>{:.1f}</td><td>{:.3f}</td><td>{:.1f} %</td><td>{:.1f}</td><td>{:.1f}</td>"
        "<td>{}</td></tr>\n",
        escaped(row.name), static_cast<double>(row.count) / steps, 1e3 * row.seconds / steps, 100 * row.share,
        row.flops / seconds * 1e-9, row.bytes / seconds * 1e-9, bound);
  }
  return html + "</table>\n";
}

}  // namespace

std::string profile_html(const Profile& profile, std::string_view title) {
  std::string html = detail::page_begin(title) + "<p>";
  for (std::size_t d = 0; d < profile.devices.size(); ++d)
    html += fmt::format("device {}: {}, {:.1f} % of the time at work<br>\n", d, escaped(profile.devices[d]),
                        profile.seconds > 0 ? 100 * profile.busy_seconds(static_cast<int>(d)) / profile.seconds : 0);
  if (profile.peak.gflops > 0)
    html += fmt::format("measured peak: {:.0f} GFLOP/s of multiply-adds, {:.1f} GB/s of c = a + b<br>\n",
                        profile.peak.gflops, profile.peak.gigabytes_per_second);
  if (profile.untimed > 0)
    html += fmt::format("without {} launches: the driver does not say when they ran<br>\n", profile.untimed);
  html += fmt::format("{} steps, {:.3f} ms each, {} launches a step</p>\n", profile.steps,
                      profile.steps > 0 ? 1e3 * profile.seconds / profile.steps : 0,
                      profile.steps > 0 ? profile.launches.size() / static_cast<std::size_t>(profile.steps) : 0);
  html += section("Layers", "Time of a step: forward blue, gradient orange.", layers_plot(profile));
  html += section("One step", "Threads of the host green, waiting grey; launches of the devices; memory alive.",
                  timeline_plot(profile));
  html += section("Roofline", "Each kind of launch under the measured bounds of the device.", roofline_plot(profile));
  html += section("By op", "", table_html(profile, ProfileBy::op, "op"));
  html += section("By kernel", "", table_html(profile, ProfileBy::kernel, "kernel"));
  html += section("By layer", "", table_html(profile, ProfileBy::layer, "layer"));
  return html + detail::page_end();
}

}  // namespace samebytes
