#include "samebytes/throughput.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "profile/page.h"
#include "profile/roofline.h"
#include "profile/svg.h"
#include "samebytes/error.h"

namespace samebytes {
namespace {

using detail::escaped;
using detail::section;
using detail::Svg;

constexpr std::array<const char*, 6> kDeviceColors{"#3b76b0", "#d98032", "#6a9f58", "#7a4fa3", "#b04a4a", "#6b6b6b"};
const char* color_of(std::size_t device) { return kDeviceColors[device % kDeviceColors.size()]; }

std::string name_of(const ThroughputRow& row) { return row.workload + " " + row.mode; }
std::string name_of(const ThroughputDevice& device) { return device.info.id + " " + device.info.name; }

// 1 234 567: groups of three, which HTML breaks at no place.
std::string grouped(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (std::ptrdiff_t place = static_cast<std::ptrdiff_t>(digits.size()) - 3; place > 0; place -= 3)
    digits.insert(static_cast<std::size_t>(place), "&#8239;");
  return digits;
}
std::string speed(double samples) { return samples < 100 ? fmt::format("{:.3g}", samples) : grouped(samples); }
std::string in_megabytes(double bytes) { return fmt::format("{:.1f} MB", bytes * 1e-6); }
std::string percent(double part, double whole) { return whole > 0 ? fmt::format("{:.0f} %", 100 * part / whole) : ""; }

std::string table(const std::vector<const char*>& heads, const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<table><tr>";
  for (const char* head : heads) html += fmt::format("<th>{}</th>", head);
  html += "</tr>\n";
  for (const auto& row : rows) {
    html += "<tr>";
    for (const std::string& cell : row) html += fmt::format("<td>{}</td>", cell);
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::string devices_table(const Throughput& throughput) {
  std::vector<std::vector<std::string>> rows;
  for (const ThroughputDevice& device : throughput.devices) {
    const DeviceInfo& info = device.info;
    rows.push_back(
        {escaped(name_of(device)), escaped(info.platform + " " + info.driver),
         fmt::format("{}, {}", info.type, info.cores), samebytes::name_of(info.memory_mode),
         samebytes::name_of(info.personality), in_megabytes(static_cast<double>(info.memory_bytes)),
         device.peak.gflops > 0 ? fmt::format("{:.0f}", device.peak.gflops) : "",
         device.peak.gigabytes_per_second > 0 ? fmt::format("{:.1f}", device.peak.gigabytes_per_second) : ""});
  }
  return table({"device", "driver", "type, compute units", "memory mode", "kernels", "memory", "GFLOP/s peak",
                "GB/s of c = a + b"},
               rows);
}

std::string rows_table(const Throughput& throughput) {
  std::vector<std::vector<std::string>> rows;
  for (const ThroughputRow& row : throughput.rows) {
    const ThroughputDevice& device = throughput.devices[row.device];
    rows.push_back(
        {escaped(name_of(row)), escaped(device.info.id), grouped(static_cast<double>(row.batch)),
         speed(row.samples_per_second), fmt::format("{:.2f}", row.step_ms_p50), fmt::format("{:.2f}", row.step_ms_p95),
         row.largest_batch ? grouped(static_cast<double>(*row.largest_batch)) : "", fmt::format("{:.1f}", row.gflops()),
         percent(row.gflops(), device.peak.gflops), fmt::format("{:.1f}", row.gigabytes_per_second()),
         percent(row.gigabytes_per_second(), device.peak.gigabytes_per_second), grouped(row.bytes_copied_per_step),
         grouped(row.bytes_gathered_per_step), in_megabytes(static_cast<double>(row.peak_bytes)),
         row.joules_per_sample ? fmt::format("{:.3g}", *row.joules_per_sample) : ""});
  }
  return table({"workload", "device", "batch", "samples/s", "ms p50", "ms p95", "largest batch", "GFLOP/s", "of peak",
                "GB/s", "of stream", "bytes copied a step", "gathered", "memory", "J/sample"},
               rows);
}

// A group of bars for each workload and mode, a bar for each device, each group in shares of its fastest.
std::string bars(const Throughput& throughput) {
  constexpr double kWidth = 960, kLeft = 170, kRight = 130, kBar = 14, kGap = 10;
  std::vector<std::string> names;
  for (const ThroughputRow& row : throughput.rows)
    if (std::find(names.begin(), names.end(), name_of(row)) == names.end()) names.push_back(name_of(row));
  if (throughput.devices.size() < 2) return "";
  const double height =
      10 + static_cast<double>(names.size()) * kGap + kBar * static_cast<double>(throughput.rows.size());
  Svg svg(kWidth, height);
  double y = 4;
  for (const std::string& name : names) {
    double most = 0;
    for (const ThroughputRow& row : throughput.rows)
      if (name_of(row) == name) most = std::max(most, row.samples_per_second);
    svg.text(kLeft - 6, y + 11, name, "end");
    for (const ThroughputRow& row : throughput.rows) {
      if (name_of(row) != name) continue;
      const double width = most > 0 ? (kWidth - kLeft - kRight) * row.samples_per_second / most : 0;
      const std::string& id = throughput.devices[row.device].info.id;
      svg.box(kLeft, y, width, kBar - 2, color_of(row.device), name_of(throughput.devices[row.device]));
      svg.text(kLeft + width + 5, y + 10, fmt::format("{:.3g} on {}", row.samples_per_second, id));
      y += kBar;
    }
    y += kGap;
  }
  return svg.finish();
}

std::string roofline_of(const Throughput& throughput, std::size_t device) {
  std::vector<detail::RooflinePoint> points;
  for (const ThroughputRow& row : throughput.rows)
    if (row.device == device)
      points.push_back(
          {row.flops_per_step, row.bytes_per_step, row.seconds_per_step(), row.mode == "train" ? 6.0 : 4.0,
           color_of(row.mode == "train" ? 0 : 1),
           fmt::format("{}: {:.1f} GFLOP/s, {:.1f} GB/s", name_of(row), row.gflops(), row.gigabytes_per_second()),
           name_of(row)});
  return detail::roofline_svg(throughput.devices[device].peak, points,
                              "a dot is a whole step, training blue, inference orange");
}

}  // namespace

double ThroughputRow::gflops() const { return seconds_per_step() > 0 ? flops_per_step / seconds_per_step() * 1e-9 : 0; }

double ThroughputRow::gigabytes_per_second() const {
  return seconds_per_step() > 0 ? bytes_per_step / seconds_per_step() * 1e-9 : 0;
}

std::string throughput_html(const Throughput& throughput, std::string_view title) {
  for (const ThroughputRow& row : throughput.rows)
    if (row.device >= throughput.devices.size())
      throw ArgumentError(fmt::format("throughput_html: {} is of device {}, there are {}", name_of(row), row.device,
                                      throughput.devices.size()));
  std::string html = detail::page_begin(title);
  if (!throughput.command.empty() || !throughput.date.empty())
    html += fmt::format("<p><code>{}</code> {}</p>\n", escaped(throughput.command), escaped(throughput.date));
  html += section("Devices",
                  "Peaks are measured: multiply-adds in registers, and c = a + b over arrays far larger than "
                  "the caches.",
                  devices_table(throughput));
  html += section("Throughput",
                  "GFLOP/s count the arithmetic that the model needs; GB/s what launches read and write, each operand "
                  "once, so that bytes in a cache can exceed the stream. A blank was not measured.",
                  rows_table(throughput));
  html += section("Devices side by side", "Samples a second.", bars(throughput));
  for (std::size_t d = 0; d < throughput.devices.size(); ++d)
    html += section("Roofline of " + name_of(throughput.devices[d]),
                    "Whole steps under the measured bounds of the device.", roofline_of(throughput, d));
  return html + detail::page_end();
}

}  // namespace samebytes
