// samebytes new writes a file once, under the name it was given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/command.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(NewOp, is_a_program_with_its_name_that_is_not_overwritten) {
  const TemporaryFolder folder;
  const auto written = run_command({"new", "op", "scaled_tanh", "--output", folder.string()});
  ASSERT_EQ(written.status, 0) << written.err;
  const std::string text = get(folder / "scaled_tanh.cpp");
  EXPECT_THAT(text, HasSubstr("__kernel void scaled_tanh("));
  EXPECT_THAT(text, Not(HasSubstr("NAME")));

  const auto again = run_command({"new", "op", "scaled_tanh", "--output", folder.string()});
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.err, HasSubstr("is there already; --force overwrites it"));
  EXPECT_EQ(run_command({"new", "op", "scaled_tanh", "--output", folder.string(), "--force"}).status, 0);
}

TEST(NewOp, a_name_that_is_no_identifier_and_a_kind_that_there_is_not_are_refused) {
  const TemporaryFolder folder;
  const auto name = run_command({"new", "op", "a-b", "--output", folder.string()});
  EXPECT_EQ(name.status, 2);
  EXPECT_THAT(name.err, HasSubstr("letters, digits and _"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a-b.cpp"));
  EXPECT_THAT(run_command({"new", "layer", "x"}).err, HasSubstr("op"));
}

}  // namespace
}  // namespace samebytes::testing
