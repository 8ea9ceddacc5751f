// samebytes estimate: the closed form beside the exact plan, for every workload that the comparison has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/command.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

TEST(EstimateCommand, the_closed_form_is_within_ten_per_cent_of_the_exact_plan) {
  const std::vector<std::vector<std::string>> workloads{{"mlp", "--batch", "64"},
                                                        {"mlp", "--batch", "256"},
                                                        {"cnn", "--batch", "64"},
                                                        {"cnn", "--batch", "256"},
                                                        {"resnet20", "--batch", "64"},
                                                        {"resnet20", "--batch", "16"},
                                                        {"transit", "--batch", "64"},
                                                        {"transit", "--batch", "16"},
                                                        {"gpt", "--batch", "12"},
                                                        {"gpt", "--batch", "48"},
                                                        {"gpt", "--size", "small", "--context", "128", "--batch", "4"},
                                                        {"gpt", "--size", "small", "--context", "128", "--batch", "8"}};
  for (std::vector<std::string> words : workloads) {
    words.insert(words.begin(), "estimate");
    words.push_back("--json");
    const auto result = run_command(words);
    ASSERT_EQ(result.status, 0) << result.err;
    const double closed = result.json()["closed_form"]["total"], exact = result.json()["exact"]["total"];
    EXPECT_NEAR(closed / exact, 1.0, 0.1) << words[1] << " " << words.back();
  }
}

TEST(EstimateCommand, the_closed_form_is_printed_with_its_numbers) {
  const auto result = run_command({"estimate", "mlp"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("closed form: 535 818 parameters x (4 weight + 4 gradient + 4 + 4 state)"));
  EXPECT_THAT(result.out, HasSubstr("+ batch 64 x (2 slots x (3 136 + 4) + "));
  EXPECT_THAT(result.out, HasSubstr("intermediate values at their fullest, in "));
}

}  // namespace
}  // namespace samebytes::testing
