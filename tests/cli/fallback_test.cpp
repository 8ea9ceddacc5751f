// samebytes --fallback: a run goes on where the device's compiler fails at a kernel, and says what ran where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/command.h"
#include "samebytes/device.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The kernels of the checkout, one file of which no compiler takes.
class BrokenKernels {
 public:
  explicit BrokenKernels(const std::string& file) {
    std::filesystem::copy(std::filesystem::path(source_folder()) / "cl", folder_ / "cl",
                          std::filesystem::copy_options::recursive);
    std::ofstream(folder_ / ("cl/" + file), std::ios::app) << "#error planted\n";
  }
  std::map<std::string, std::string> environment() const { return {{"SAMEBYTES_KERNEL_DIR", folder_ / "cl"}}; }

 private:
  TemporaryFolder folder_;
};

bool runs_cpu_kernels() { return list_devices().front().personality == Personality::cpu; }

TEST(Fallback, a_training_goes_on_with_a_kernel_of_another_device_and_counts_it) {
  if (!runs_cpu_kernels()) GTEST_SKIP() << "needs_cpu_kernels: " << list_devices().front().name;
  const BrokenKernels kernels("cpu/cross_entropy.cl");
  const std::vector<std::string> words = {"train", "digits", "--steps", "5", "--json"};
  const auto plain = run_command(words);
  ASSERT_EQ(plain.status, 0) << plain.err;
  EXPECT_FALSE(plain.json().contains("fallbacks"));

  const auto stopped = run_command(words, kernels.environment());
  EXPECT_EQ(stopped.status, 1);
  EXPECT_THAT(stopped.err, HasSubstr(": kernel cpu/cross_entropy.cl does not build on "));
  EXPECT_THAT(stopped.err, HasSubstr("--fallback"));

  std::vector<std::string> more = words;
  more.insert(more.end(), {"--fallback", "--explain"});
  const auto result = run_command(more, kernels.environment());
  ASSERT_EQ(result.status, 0) << result.err;
  const auto summary = result.json();
  EXPECT_NEAR(summary["train_loss"].get<double>(), plain.json()["train_loss"].get<double>(), 1e-3);
  ASSERT_FALSE(summary["fallbacks"].empty()) << summary.dump();
  std::uint64_t launches = 0;
  for (const auto& fallback : summary["fallbacks"]) {
    EXPECT_THAT(fallback["op"].get<std::string>(), HasSubstr("cross_entropy"));
    EXPECT_THAT(fallback["device"].get<std::string>(), HasSubstr("cpu:0 '"));
    EXPECT_THAT(fallback["ran_on"].get<std::string>(), HasSubstr("cpu:0/gpu '"));
    EXPECT_THAT(fallback["reason"].get<std::string>(), HasSubstr("planted"));
    launches += fallback["launches"].get<std::uint64_t>();
  }
  EXPECT_GE(launches, 5u);
  EXPECT_EQ(summary["bytes_copied_per_step"], 0);
  EXPECT_THAT(result.err, HasSubstr("cross_entropy runs on cpu:0/gpu '"));
}

TEST(Fallback, a_run_without_trouble_says_that_there_was_none) {
  const auto result = run_command({"bench", "mlp", "--mode", "train", "--steps", "2", "--fallback", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.json()[0]["fallbacks"], nlohmann::ordered_json::array());
  EXPECT_THAT(result.err, Not(HasSubstr("fallback")));
}

}  // namespace
}  // namespace samebytes::testing
