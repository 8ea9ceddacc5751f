// samebytes --version: the version, the commit it was built from, how it was built, the parts that were built in and
// the OpenCL drivers of this machine. The build gives SAMEBYTES_COMMIT, SAMEBYTES_PARTS, SAMEBYTES_BUILD_TYPE,
// SAMEBYTES_COMPILER and SAMEBYTES_SANITIZE.
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
  Json build{{"type", SAMEBYTES_BUILD_TYPE}, {"compiler", SAMEBYTES_COMPILER}, {"sanitize", SAMEBYTES_SANITIZE}};
  std::string built = fmt::format("{}, {}", SAMEBYTES_BUILD_TYPE, SAMEBYTES_COMPILER);
  if (*SAMEBYTES_SANITIZE) built += ", sanitized";
  if (as_json)
    return Json{{"version", kVersionNumber},
                {"commit", commit.empty() ? Json() : Json(commit)},
                {"build", std::move(build)},
                {"parts", parts},
                {"drivers", drivers}}
               .dump() +
           "\n";
  return fmt::format("samebytes {}{}\n  build    {}\n  parts    {}\n  drivers  {}\n", kVersionNumber,
                     commit.empty() ? "" : ", commit " + commit, built, parts.empty() ? "none" : list_text(parts),
                     drivers.empty() ? "none: `samebytes devices` says why" : list_text(drivers));
}

}  // namespace samebytes::cli
