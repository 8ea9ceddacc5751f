#include <functional>
#include <iterator>

#include "fuzz/target.h"
#include "placement/crossings.h"
#include "plan/host_cost.h"
#include "runtime/kernel_speed.h"
#include "runtime/matrix_instructions.h"
#include "samebytes/error.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

// What was measured of devices; the tuner's own store is a target of its own.
const Added added({
    .name = "stores",
    .file = "store.json",
    .make =
        [](const std::string& folder) {
          testing::put(folder + "/host", detail::host_costs_text({}, {}));
          testing::put(folder + "/contexts", R"({"about": "costs", "format": 1, "costs": {
"cpu -> gpu": {"seconds": 3e-5, "bytes_per_second": 5e9}, "cpu": {"seconds": 1e-6, "bytes_per_second": 1e10}}})");
          testing::put(folder + "/devices", R"({"about": "speeds", "format": 1, "speeds": {
"platform, cpu, 1, 4 cores": {"vectors": 95.5, "items": 40, "products": 50}}})");
          testing::put(folder + "/instructions", R"({"about": "trials", "format": 2, "devices": {
"platform, cpu, 1": {"avx512_bf16": "works", "amx_int8": "process 7"}}})");
        },
    .read =
        [](const std::string& path) {
          const std::function<void()> readers[] = {
              [&] { detail::parse_host_costs(testing::get(path), path, {}); }, [&] { detail::Crossings::read(path); },
              [&] { detail::read_kernel_speeds(path); }, [&] { detail::read_instruction_verdicts(path); }};
          std::size_t refused = 0;
          for (const auto& read : readers) {
            try {
              read();
            } catch (const Error&) {
              if (++refused == std::size(readers)) throw;
            }
          }
        },
    .words = {"\"format\"", "\"costs\"", "\"speeds\"", "\"devices\"", "\"seconds\"", "\"bytes_per_second\"", "1e999",
              "-1", "0", "null", "[]", "{}"},
    .growth = 300,
});

}  // namespace
}  // namespace samebytes::fuzz
