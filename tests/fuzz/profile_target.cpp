#include "fuzz/target.h"
#include "samebytes/doctor.h"
#include "samebytes/profile.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

const Added added({
    .name = "profile",
    .file = "profile.json",
    .make =
        [](const std::string& folder) {
          Profile profile;
          profile.steps = 2;
          profile.seconds = 1;
          profile.launches.resize(2);
          for (std::size_t i = 0; i < 2; ++i) {
            profile.launches[i].op = i == 0 ? "matmul" : "relu";
            profile.launches[i].kernel = i == 0 ? "gemm_f32" : "fused";
            profile.launches[i].start = 0.5 * static_cast<double>(i);
            profile.launches[i].seconds = 0.25;
          }
          testing::put(folder + "/profile", "a table\n" + profile_json(profile) + "\n");
        },
    .read =
        [](const std::string& path) {
          const std::string log = path.substr(0, path.rfind('/')) + "/run.jsonl";
          testing::put(log, "{\"event\": \"start\", \"workload\": \"digits\", \"precision\": \"bf16\"}\n");
          to_text(doctor::diagnose(log, path));
        },
    .words = {"\"seconds\"", "\"by_op\"", "\"share\"", "\"name\"", "1e308", "1e999", "-1", "null", "[]", "{}"},
    .growth = 300,
});

}  // namespace
}  // namespace samebytes::fuzz
