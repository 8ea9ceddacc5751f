// Unequal devices: PoCL's two drivers in one context, and PoCL beside llvmpipe, which has a context of its own and no
// shared virtual memory. Shares are measured side by side before the first step.
#include <gmock/gmock.h>

#include "cli/killed_run.h"

namespace samebytes::testing {
namespace {

TEST(SharesSlow, unequal_devices_get_measured_shares_that_a_checkpoint_keeps) {
  const std::map<std::string, std::string> drivers = {{"POCL_DEVICES", "pthread basic"}};
  const auto found = run_command({"devices", "--json"}, drivers).json();
  if (found["devices"].size() < 2) GTEST_SKIP() << "needs_pocl_basic";
  const Words run = {"train", "digits", "--quiet", "--device", "cpu:0,cpu:1"};
  const Files files;
  const CommandResult first = run_command(
      joined(run, joined(files.keeping("5"), {"--steps", "10", "--schedule", "constant", "--json"})), drivers);
  ASSERT_EQ(first.status, 0) << first.err;
  const auto shares = first.json()["shares"];
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0]["share"].get<int>() + shares[1]["share"].get<int>(), 64);
  EXPECT_EQ(first.json()["bytes_copied_per_step"], 0);
  const CommandResult rest = run_command(
      joined(run,
             joined(files.keeping("5"), {"--steps", "15", "--schedule", "constant", "--json", "--resume", "auto"})),
      drivers);
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_EQ(rest.json()["shares"][0]["share"], shares[0]["share"]);
}

TEST(SharesSlow, a_driver_without_svm_gets_what_it_is_worth_and_its_transfers_are_reported) {
  const std::map<std::string, std::string> drivers = {{"RUSTICL_ENABLE", "llvmpipe"}};
  if (run_command({"devices"}, drivers).out.find("llvmpipe") == std::string::npos) GTEST_SKIP() << "needs_llvmpipe";
  const Words run = {"train", "digits", "--quiet", "--json", "--steps", "4", "--schedule", "constant"};
  const auto alone = run_command(joined(run, {"--device", "Portable"}), drivers).json();
  const auto measured = run_command(joined(run, {"--device", "Portable,llvmpipe"}), drivers).json();
  EXPECT_GT(measured["shares"][0]["share"], measured["shares"][1]["share"]) << "it is some ten times slower";
  const auto shared = run_command(joined(run, {"--device", "Portable,llvmpipe", "--shares", "60,4"}), drivers).json();
  EXPECT_EQ(shared["shares"][1]["share"], 4);
  EXPECT_NEAR(shared["train_loss"].get<double>(), alone["train_loss"].get<double>(), 0.05);
  // Each step the second device gets its samples and all parameters and gives its gradients: 30 762 of 4 bytes each
  // way.
  EXPECT_GT(shared["bytes_copied_per_step"].get<double>(), 2 * 4 * 30762.0);
}

}  // namespace
}  // namespace samebytes::testing
