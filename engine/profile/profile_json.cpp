// A profile as JSON, which `samebytes doctor` reads.
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "samebytes/profile.h"

namespace samebytes {
namespace {

using Json = nlohmann::ordered_json;

Json rows_of(const Profile& profile, ProfileBy by, ProfileSort sort) {
  Json rows = Json::array();
  for (const ProfileRow& row : profile_rows(profile, by, sort))
    rows.push_back({{"name", row.name},
                    {"count", row.count},
                    {"seconds", row.seconds},
                    {"share", row.share},
                    {"flops", row.flops},
                    {"bytes", row.bytes},
                    {"share_of_bound", row.share_of_bound}});
  return rows;
}

}  // namespace

std::string profile_json(const Profile& profile, ProfileSort sort) {
  return detail::to_line(Json{{"steps", profile.steps},
                              {"seconds", profile.seconds},
                              {"busy_seconds", profile.busy_seconds()},
                              {"launches", profile.launches.size()},
                              {"untimed_launches", profile.untimed},
                              {"gflops_peak", profile.peak.gflops},
                              {"gigabytes_per_second_peak", profile.peak.gigabytes_per_second},
                              {"by_kernel", rows_of(profile, ProfileBy::kernel, sort)},
                              {"by_op", rows_of(profile, ProfileBy::op, sort)},
                              {"by_layer", rows_of(profile, ProfileBy::layer, sort)}});
}

}  // namespace samebytes
