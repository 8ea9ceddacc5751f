// Unequal devices of one context, made of PoCL's two drivers: shares are measured side by side before the first step.
#include <gmock/gmock.h>

#include "cli/killed_run.h"

namespace samebytes::testing {
namespace {

TEST(SharesSlow, unequal_devices_get_measured_shares_that_a_checkpoint_keeps) {
  const std::map<std::string, std::string> drivers = {{"POCL_DEVICES", "pthread basic"}};
  const CommandResult found = run_command({"devices"}, drivers);
  if (found.out.find("basic") == std::string::npos || found.out.find("pthread") == std::string::npos)
    GTEST_SKIP() << "needs_pocl_basic";
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

}  // namespace
}  // namespace samebytes::testing
