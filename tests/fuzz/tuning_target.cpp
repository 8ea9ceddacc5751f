#include "fuzz/target.h"
#include "runtime/tuning.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

DeviceInfo device() {
  DeviceInfo info;
  info.name = "device";
  info.platform = "platform";
  info.driver = "1";
  return info;
}

const Added added({
    .name = "tuning",
    .file = "tuning.json",
    .make = [](const std::string& folder) { testing::put(folder + "/store", detail::tuning_text({}, device())); },
    .read =
        [](const std::string& path) {
          std::string foreign;
          detail::parse_tuning(testing::get(path), path, device(), &foreign);
        },
    .words = {"\"tiles\": {", "\"launch\": {", "\"clblast\": {", "\"measured\": [", "\"gemm\"", "\"date\"", "1e999",
              "-1"},
    .growth = 300,
});

}  // namespace
}  // namespace samebytes::fuzz
