// samebytes doctor on runs that were really broken, for all of its troubles but a starving loader, which takes a larger
// set: the first thing it says is what broke them, and the first thing to do is what mends them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "cli/doctor_findings.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

// A few steps of the digits, told in a log.
struct BrokenRun {
  const TemporaryFolder folder;
  const std::string log = folder / "run.jsonl";
  CommandResult result;

  explicit BrokenRun(Words words, int status = 0, const std::map<std::string, std::string>& environment = {}) {
    const Words run = {"train", "digits", "--log", log, "--quiet"};
    words.insert(words.begin(), run.begin(), run.end());
    result = run_command(words, environment);
    EXPECT_EQ(result.status, status) << result.err;
  }
  Json findings(const std::string& profile = {}) const { return findings_of(log, profile); }
};

// rule and first options
std::pair<std::string, std::string> finding(const char* rule, const char* options) { return {rule, options}; }

TEST(DoctorOfRuns, memory_that_runs_out_is_named_first) {
  if (is_sanitized()) GTEST_SKIP() << "LD_PRELOAD does not go with sanitizers";
  const BrokenRun run(
      {"--batch", "512"}, 1,
      {{"LD_PRELOAD", built_program("libfaults_preload.so")}, {"SAMEBYTES_FAULTS", "room clSVMAlloc 3000000"}});
  EXPECT_THAT(run.result.err, HasSubstr("the driver has no more memory"));
  const Json findings = run.findings();
  EXPECT_EQ(first_of(findings), finding("out_of_memory", "--micro-batch 256")) << findings.dump();
  EXPECT_THAT(findings[0]["seen"].get<std::string>(), HasSubstr("more were wanted, the limit is"));
}

TEST(DoctorOfRuns, a_rate_that_ends_in_nan_is_named_first) {
  const BrokenRun run({"--rate", "1e30", "--schedule", "constant", "--clip-norm", "0"}, 1);
  EXPECT_THAT(run.result.err, ::testing::Not(HasSubstr("is -nan")));
  const Json findings = run.findings();
  EXPECT_EQ(first_of(findings), finding("not_finite", "--rate 0.003")) << findings.dump();
  EXPECT_EQ(findings[0]["severity"], "failure");
  EXPECT_GT(findings[0]["line"], 1);
  EXPECT_EQ(findings[1]["rule"], "rate_too_large");
}

TEST(DoctorOfRuns, check_nan_in_the_log_is_the_same_trouble) {
  EXPECT_EQ(first_of(BrokenRun({"--rate", "1e30", "--check-nan"}, 1).findings()).first, "not_finite");
}

TEST(DoctorOfRuns, batch_norm_on_few_samples_is_named_first) {
  for (const char* batch : {"1", "2"}) {
    const Json findings = BrokenRun({"--batch", batch, "--steps", "3"}).findings();
    EXPECT_EQ(first_of(findings), finding("batch_norm_starves", "--batch 64")) << findings.dump();
    EXPECT_EQ(findings[0]["severity"], "serious");
  }
}

TEST(DoctorOfRuns, a_rate_out_of_proportion_to_the_batch_is_named_first) {
  const Json large = BrokenRun({"--rate", "1", "--steps", "40"}).findings();
  EXPECT_EQ(first_of(large), finding("rate_too_large", "--rate 0.003")) << large.dump();
  const Json small = BrokenRun({"--rate", "1e-9", "--steps", "40"}).findings();
  EXPECT_EQ(first_of(small), finding("rate_too_small", "--rate 0.003")) << small.dump();
  const Json same = BrokenRun({"--batch", "512", "--steps", "6", "--workers", "1"}).findings();
  EXPECT_EQ(first_of(same), finding("rate_not_scaled", "--scale-rate linear --base-batch 64")) << same.dump();
}

TEST(DoctorOfRuns, what_keeps_a_device_from_being_faster_is_named_first) {
  // Every op by itself and its result read.
  const Json checked = BrokenRun({"--check-nan", "--steps", "3"}).findings();
  EXPECT_EQ(first_of(checked).first, "checks_everything") << checked.dump();
  // One core of several.
  if (std::thread::hardware_concurrency() < 2) return;
  const Json narrow = BrokenRun({"--threads", "1", "--workers", "1", "--steps", "40"}).findings();
  ASSERT_FALSE(narrow.empty());
  bool is_named = false;
  for (const auto& finding : narrow) is_named = is_named || finding["rule"] == "few_threads";
  EXPECT_TRUE(is_named) << narrow.dump();
}

TEST(DoctorOfRuns, clipping_in_every_step_is_named_first) {
  const Json findings = BrokenRun({"--clip-norm", "0.001", "--steps", "40", "--workers", "1"}).findings();
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0]["rule"], "clips_nearly_always") << findings.dump();
  EXPECT_THAT(findings[0]["seen"].get<std::string>(), HasSubstr("100 % of the updates were clipped to 0.001"));
}

}  // namespace
}  // namespace samebytes::testing
