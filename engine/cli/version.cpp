// samebytes --version: the version, the commit it was built from, the parts that were built in and the OpenCL drivers
// of this machine. The build gives SAMEBYTES_COMMIT and SAMEBYTES_PARTS.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "cli/options.h"
#include "cli/text.h"
#include "samebytes/device.h"

namespace samebytes::cli {

std::string version_text(bool as_json) {
  std::vector<std::string> parts, drivers;
  std::istringstream words(SAMEBYTES_PARTS);
  for (std::string word; words >> word;) parts.push_back(word);
  for (const DeviceInfo& info : list_devices()) {
    std::string driver = fmt::format("{} {}", info.platform, info.driver);
    if (std::find(drivers.begin(), drivers.end(), driver) == drivers.end()) drivers.push_back(std::move(driver));
  }
  const std::string commit = SAMEBYTES_COMMIT;
  if (as_json)
    return Json{{"version", kVersionNumber},
                {"commit", commit.empty() ? Json() : Json(commit)},
                {"parts", parts},
                {"drivers", drivers}}
               .dump() +
           "\n";
  return fmt::format("samebytes {}{}\n  parts    {}\n  drivers  {}\n", kVersionNumber,
                     commit.empty() ? "" : ", commit " + commit, parts.empty() ? "none" : list_text(parts),
                     drivers.empty() ? "none: `samebytes devices` says why" : list_text(drivers));
}

}  // namespace samebytes::cli
