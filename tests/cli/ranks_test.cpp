// What is said of the options of several processes where there is one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

TEST(Ranks, options_of_several_processes_are_refused_in_one) {
  const auto error = [](const std::vector<std::string>& words) {
    std::vector<std::string> all{"train", "digits", "--steps", "1", "--quiet"};
    all.insert(all.end(), words.begin(), words.end());
    const CommandResult result = run_command(all);
    EXPECT_EQ(result.status, 2);
    return result.err;
  };
  EXPECT_THAT(error({"--shard-state"}), HasSubstr("--shard-state is for several processes, and the run has one"));
  EXPECT_THAT(error({"--rank-timeout", "5"}), HasSubstr("--rank-timeout is for several processes"));
}

}  // namespace
}  // namespace samebytes::testing
