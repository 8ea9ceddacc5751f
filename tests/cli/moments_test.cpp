// --moments: half the bytes for what the optimizer remembers, and who cannot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

TEST(Moments, bf16_trains_as_well_and_is_said) {
  const auto result = run_command({"train", "digits", "--steps", "60", "--moments", "bf16"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("moments in bf16"));
  const auto json = run_command({"train", "digits", "--steps", "60", "--moments", "bf16", "--json"}).json();
  EXPECT_GT(json["test_accuracy"], 0.5);
}

TEST(Moments, an_optimizer_that_keeps_f32_is_named) {
  const auto result = run_command({"train", "digits", "--optimizer", "lamb", "--moments", "bf16"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("--moments: lamb keeps them in f32; sgd, adam, adamw, rmsprop and lion have the "
                                    "choice"));
}

}  // namespace
}  // namespace samebytes::testing
