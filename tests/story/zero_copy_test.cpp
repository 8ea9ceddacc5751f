// Host and device share bytes, seen from outside: a preloaded library counts every OpenCL call that moves some, and
// every launch.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

struct Counted {
  nlohmann::ordered_json summary;  // what the command says
  nlohmann::json calls;            // what the preloaded library saw
};

Counted train_counted(std::vector<std::string> words, std::map<std::string, std::string> environment) {
  const TemporaryFolder folder;
  environment["LD_PRELOAD"] = built_program("libcount_bytes_preload.so");
  environment["SAMEBYTES_COUNT_FILE"] = folder / "count.json";
  words.insert(words.end(), {"--json", "--quiet", "--log", folder / "log.jsonl"});
  const auto result = run_command(words, environment);
  EXPECT_EQ(result.status, 0) << result.err;
  return {result.json(), nlohmann::json::parse(get(folder / "count.json"), nullptr, false)};
}

std::string memory_mode() {
  const auto devices = run_command({"devices", "--json"}).json();
  return devices["devices"].empty() ? "none" : devices["devices"][0]["memory_mode"].get<std::string>();
}

TEST(ZeroCopy, two_hundred_training_steps_move_no_byte_from_decoded_sample_to_logged_loss) {
  if (is_sanitized()) GTEST_SKIP() << "LD_PRELOAD does not go with a sanitizer";
  if (memory_mode() != "fine" && memory_mode() != "system") GTEST_SKIP() << "no device that shares memory";
  const Counted run = train_counted({"train", "digits", "--steps", "200"}, {});
  ASSERT_TRUE(run.calls.is_object());
  EXPECT_EQ(run.calls["moved"], 0) << run.calls.dump();
  EXPECT_EQ(run.summary["bytes_copied_per_step"], 0);
  EXPECT_GT(run.summary["bytes_gathered_per_step"], 0) << "a shuffled batch is written by the host";
  EXPECT_EQ(run.summary["steps"], 200);
}

TEST(ZeroCopy, the_ledger_of_copy_mode_is_what_the_calls_moved) {
  if (is_sanitized()) GTEST_SKIP() << "LD_PRELOAD does not go with a sanitizer";
  constexpr int kSteps = 23, kBatch = 64;
  const Counted run =
      train_counted({"train", "digits", "--steps", std::to_string(kSteps)}, {{"SAMEBYTES_MEMORY", "copy"}});
  ASSERT_TRUE(run.calls.is_object());
  EXPECT_EQ(run.summary["memory_mode"], "copy");
  // 1437 samples of 8 x 8 floats and a label went down, and at most a few numbers a step came back.
  const double batches = 1437.0 * (64 + 1) * 4 / kSteps;
  const double copied = run.summary["bytes_copied_per_step"];
  EXPECT_GE(copied, batches);
  EXPECT_LE(copied, batches + 64) << "more than the batches and the losses was copied; batch " << kBatch;
  EXPECT_GE(run.calls["moved"].get<double>(), copied * kSteps);
}

// The difference of two runs leaves out what is done once: tests of the device, the accuracy at the end.
double launches_per_step_seen(const std::map<std::string, std::string>& environment, double* said) {
  constexpr int kFew = 5, kMany = 15;  // both end within the first epoch
  const Counted few = train_counted({"train", "digits", "--steps", std::to_string(kFew)}, environment);
  const Counted many = train_counted({"train", "digits", "--steps", std::to_string(kMany)}, environment);
  *said = many.summary["launches_per_step"];
  return (many.calls["kernel"]["calls"].get<double>() - few.calls["kernel"]["calls"].get<double>()) / (kMany - kFew);
}

TEST(Launches, are_those_seen_from_outside_with_our_products_and_with_clblast) {
  if (is_sanitized()) GTEST_SKIP() << "LD_PRELOAD does not go with a sanitizer";
  double packed = 0, clblast = 0;
  EXPECT_EQ(launches_per_step_seen({}, &packed), packed);
  EXPECT_EQ(launches_per_step_seen({{"SAMEBYTES_GEMM", "clblast"}}, &clblast), clblast);
  EXPECT_GT(clblast, packed);
}

}  // namespace
}  // namespace samebytes::testing
