// Rows and the table of a profile.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "samebytes/profile.h"

namespace samebytes {
namespace {

const std::string& name_of(const ProfiledLaunch& launch, ProfileBy by) {
  switch (by) {
    case ProfileBy::kernel: return launch.kernel;
    case ProfileBy::op: return launch.op;
    case ProfileBy::layer: break;
  }
  return launch.layer;
}

double key_of(const ProfileRow& row, ProfileSort sort) {
  switch (sort) {
    case ProfileSort::time: return row.seconds;
    case ProfileSort::count: return static_cast<double>(row.count);
    case ProfileSort::flops: return row.flops;
    case ProfileSort::bytes: break;
  }
  return row.bytes;
}

double bound_seconds(const DevicePeak& peak, double flops, double bytes) {
  if (peak.gflops <= 0 || peak.gigabytes_per_second <= 0) return 0;
  return std::max(flops / (peak.gflops * 1e9), bytes / (peak.gigabytes_per_second * 1e9));
}

std::string clipped(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 2) + "..";
}

}  // namespace

double Profile::busy_seconds(int device) const {
  double busy = 0, until = -1e300;  // launches are in the order of their starts
  for (const ProfiledLaunch& launch : launches) {
    if (launch.device != device) continue;
    const double end = launch.start + launch.seconds;
    busy += std::max(0.0, end - std::max(until, launch.start));
    until = std::max(until, end);
  }
  return busy;
}

std::vector<ProfileRow> profile_rows(const Profile& profile, ProfileBy by, ProfileSort sort) {
  std::map<std::string, ProfileRow> rows;
  std::map<std::string, double> bounds;
  double all = 0;
  for (const ProfiledLaunch& launch : profile.launches) {
    std::string name = name_of(launch, by);
    if (by == ProfileBy::layer) name = name.empty() ? "(no layer)" : name;
    ProfileRow& row = rows[name];
    row.name = name;
    ++row.count;
    row.seconds += launch.seconds;
    row.flops += launch.flops;
    row.bytes += launch.bytes;
    bounds[name] += bound_seconds(profile.peak, launch.flops, launch.bytes);
    all += launch.seconds;
  }
  std::vector<ProfileRow> sorted;
  for (auto& [name, row] : rows) {
    row.share = all > 0 ? row.seconds / all : 0;
    row.share_of_bound = row.seconds > 0 ? bounds[name] / row.seconds : 0;
    sorted.push_back(row);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [sort](const ProfileRow& a, const ProfileRow& b) { return key_of(a, sort) > key_of(b, sort); });
  return sorted;
}

std::string profile_table(const Profile& profile, const ProfileTableOptions& options) {
  std::vector<ProfileRow> rows = profile_rows(profile, options.by, options.sort);
  const auto top = static_cast<std::size_t>(std::max(0, options.top));
  if (top > 0 && rows.size() > top) {
    ProfileRow rest{.name = fmt::format("({} more)", rows.size() - top)};
    for (std::size_t i = top; i < rows.size(); ++i) {
      rest.count += rows[i].count;
      rest.seconds += rows[i].seconds;
      rest.share += rows[i].share;
      rest.flops += rows[i].flops;
      rest.bytes += rows[i].bytes;
      rest.share_of_bound += rows[i].share_of_bound * rows[i].seconds;
    }
    rest.share_of_bound = rest.seconds > 0 ? rest.share_of_bound / rest.seconds : 0;
    rows.resize(top);
    rows.push_back(rest);
  }
  const char* const heading = options.by == ProfileBy::kernel ? "kernel" : options.by == ProfileBy::op ? "op" : "layer";
  constexpr std::size_t kNameWidth = 40;
  std::string text = fmt::format("{:<{}} {:>10} {:>11} {:>7} {:>9} {:>8} {:>9}\n", heading, kNameWidth, "a step",
                                 "ms a step", "share", "GFLOP/s", "GB/s", "of bound");
  const double steps = std::max(1, profile.steps);
  for (const ProfileRow& row : rows) {
    const double seconds = std::max(row.seconds, 1e-12);
    const std::string bound = row.share_of_bound > 0 ? fmt::format("{:.0f} %", 100 * row.share_of_bound) : "";
    text +=
        fmt::format("{:<{}} {:>10.1f} {:>11.3f} {:>5.1f} % {:>9.1f} {:>8.1f} {:>9}\n", clipped(row.name, kNameWidth),
                    kNameWidth, static_cast<double>(row.count) / steps, 1e3 * row.seconds / steps, 100 * row.share,
                    row.flops / seconds * 1e-9, row.bytes / seconds * 1e-9, bound);
  }
  if (profile.untimed > 0)
    text += fmt::format("without {} launches: the driver does not say when they ran (clGetEventProfilingInfo)\n",
                        profile.untimed);
  return text;
}

}  // namespace samebytes
