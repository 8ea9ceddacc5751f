// --memory-limit, --batch auto and the verb estimate, as processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

double planned_total(const nlohmann::ordered_json& json, const char* which) {
  return json[which]["total"].get<double>();
}

TEST(Estimate, the_exact_plan_is_what_the_run_takes) {
  const auto estimate = run_command({"estimate", "mlp", "--batch", "256", "--json"});
  ASSERT_EQ(estimate.status, 0) << estimate.err;
  const auto json = estimate.json();
  const auto run = run_command({"bench", "mlp", "--mode", "train", "--batch", "256", "--steps", "3", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const double taken = run.json()[0]["peak_bytes"].get<double>();
  EXPECT_NEAR(planned_total(json, "exact") / taken, 1, 0.05);
  // Whole pages, packed operands and cells outside the arena are not in the closed form.
  EXPECT_NEAR(planned_total(json, "closed_form") / taken, 1, 0.15);
  for (const char* part : {"parameters", "gradients", "optimizer", "activations", "batches"})
    EXPECT_NEAR(json["exact"][part].get<double>(), json["closed_form"][part].get<double>(), 0.1 * taken) << part;
}

TEST(Estimate, text_has_both_side_by_side_and_what_was_measured) {
  const auto result = run_command({"estimate", "mlp", "--measure"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("closed form  exact plan"));
  EXPECT_THAT(result.out, HasSubstr("optimizer"));
  EXPECT_THAT(result.out, HasSubstr("measured"));
}

TEST(Limit, a_step_that_fits_is_left_as_it_is) {
  const auto result =
      run_command({"bench", "mlp", "--mode", "train", "--steps", "2", "--memory-limit", "1GB", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = result.json()[0];
  EXPECT_EQ(json["memory_limit_bytes"], 1'000'000'000);
  EXPECT_EQ(json["memory_techniques"], "nothing");
  EXPECT_EQ(json["planned_peak_bytes"], json["peak_bytes"]);
  EXPECT_THAT(result.err, HasSubstr("limit 1 GB; chosen: nothing"));
}

TEST(Limit, what_cannot_fit_says_the_smallest_budget_and_that_one_fits) {
  const auto failed =
      run_command({"bench", "mlp", "--mode", "train", "--steps", "2", "--memory-limit", "1MB", "--json"});
  EXPECT_EQ(failed.status, 1);
  const std::string begin = "--memory-limit 1 MB: the smallest step that there is needs ";
  ASSERT_THAT(failed.err, HasSubstr(begin));
  const std::size_t open = failed.err.find('(', failed.err.find(begin));
  const std::string bytes = failed.err.substr(open + 1, failed.err.find(' ', open) - open - 1);
  const auto result =
      run_command({"bench", "mlp", "--mode", "train", "--steps", "2", "--memory-limit", bytes, "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.json()[0]["planned_peak_bytes"].dump(), bytes);
  EXPECT_LE(result.json()[0]["peak_bytes"], std::stoll(bytes));
}

TEST(Limit, a_batch_is_found_that_fills_the_budget) {
  const auto result =
      run_command({"train", "digits", "--steps", "2", "--batch", "auto", "--memory-limit", "20MB", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = result.json();
  EXPECT_GT(json["batch"], 8);
  EXPECT_EQ(json["batch"].get<int>() % 8, 0);
  EXPECT_LE(json["planned_peak_bytes"], 20'000'000);
  EXPECT_GT(json["planned_peak_bytes"], 16'000'000);
  EXPECT_LE(json["peak_bytes"], 20'000'000);
}

TEST(Limit, wrong_texts_say_what_is_expected) {
  const auto text = run_command({"train", "digits", "--memory-limit", "lots"});
  EXPECT_EQ(text.status, 2);
  EXPECT_THAT(text.err, HasSubstr("powers of 1024) behind it, such as 1.5GB; got 'lots'"));
  EXPECT_EQ(run_command({"train", "digits", "--batch", "automatic"}).status, 2);
  const auto allow = run_command({"train", "digits", "--allow", "moments"});
  EXPECT_EQ(allow.status, 2);
  EXPECT_THAT(allow.err, HasSubstr("--allow needs --memory-limit BYTES"));
}

}  // namespace
}  // namespace samebytes::testing
