// samebytes sweep and train --adaptive-batch on the digits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "cli/command.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

TEST(Sweep, has_a_row_for_each_size_advice_and_a_plot) {
  const TemporaryFolder folder;
  const std::string file = folder / "sweep.svg";
  const auto result = run_command({"sweep", "digits", "--batch", "32,8,64", "--steps", "24", "--plot", file, "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = result.json();
  ASSERT_TRUE(json.is_object()) << result.out;
  ASSERT_EQ(json["rows"].size(), 3u);
  const std::vector<int> sizes = {8, 32, 64};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto& row = json["rows"][i];
    EXPECT_EQ(row["batch"], sizes[i]);
    EXPECT_EQ(row["class"], "mini");
    EXPECT_GT(row["samples_per_second"], 0.0);
    EXPECT_GT(row["step_ms_p50"], 0.0);
    EXPECT_GT(row["peak_bytes"], row["activation_bytes"]);
    EXPECT_GT(row["activation_bytes"], 0);
    EXPECT_GT(row["covariance_trace"], 0.0);
    EXPECT_TRUE(row.contains("noise_scale"));
    EXPECT_GT(row["curve"].size(), 4u);
    EXPECT_LE(row["steps"], 24);
  }
  EXPECT_GT(json["rows"][2]["activation_bytes"], json["rows"][0]["activation_bytes"]);
  // The rate is AdamW's: half of it for a quarter of the batch.
  EXPECT_NEAR(json["rows"][2]["rate"], 3e-3, 1e-12);
  EXPECT_NEAR(json["rows"][0]["rate"], 3e-3 / std::sqrt(8.0), 1e-12);
  EXPECT_TRUE(json["rows"][2]["steps_to_target"].is_number()) << "the target is one that 64 reached";
  EXPECT_LE(json["rows"][2]["steps_to_target"], 12);
  EXPECT_THAT(json["target"].get<std::string>(), HasSubstr("batch 64"));
  EXPECT_TRUE(json["recommended_batch"].is_number());
  std::vector<std::string> rules;
  for (const auto& advice : json["advice"]) rules.push_back(advice["rule"]);
  for (const char* rule : {"batch norm", "usual sizes", "grow from small", "learning rate", "critical batch"})
    EXPECT_THAT(rules, ::testing::Contains(rule));
  const std::string svg = get(file);
  EXPECT_THAT(svg, HasSubstr("<svg"));
  EXPECT_THAT(svg, HasSubstr("samples a second"));
  for (const char* word : {"samples/s", "activations", "noise", "recommended", "batch norm wants 16"})
    EXPECT_THAT(result.err, HasSubstr(word));
}

TEST(Sweep, a_given_target_ends_a_size_and_the_same_seed_takes_the_same_steps) {
  const auto run = [] {
    return run_command(
        {"sweep", "digits", "--batch", "16", "--target-loss", "1.8", "--steps", "200", "--json", "--quiet"});
  };
  const auto first = run();
  ASSERT_EQ(first.status, 0) << first.err;
  const auto row = first.json()["rows"][0], again = run().json()["rows"][0];
  EXPECT_LT(row["steps"], 200);
  EXPECT_EQ(row["steps_to_target"], again["steps_to_target"]);
  EXPECT_EQ(row["test_loss"], again["test_loss"]);
  EXPECT_EQ(row["noise_scale"], again["noise_scale"]);
}

TEST(Sweep, goes_with_16_bits) {
  for (const char* precision : {"f16", "bf16"}) {
    const auto result = run_command({"sweep", "digits", "--batch", "16,64", "--steps", "20", "--precision", precision,
                                     "--ema", "0.5", "--json", "--quiet"});
    ASSERT_EQ(result.status, 0) << result.err;
    const auto json = result.json();
    EXPECT_EQ(json["precision"], precision);
    for (const auto& row : json["rows"]) {
      EXPECT_LT(row["test_loss"], 2.5) << row.dump();
      EXPECT_GT(row["covariance_trace"], 0.0) << row.dump();
      EXPECT_EQ(row["skipped_steps"].is_number(), std::string(precision) == "f16");
    }
  }
}

TEST(Sweep, wrong_usage_is_named) {
  const auto large = run_command({"sweep", "digits", "--batch", "8,100000"});
  EXPECT_EQ(large.status, 2);
  EXPECT_THAT(large.err, HasSubstr("--batch 100000 is larger than the training set, which has 1 437 samples"));
  EXPECT_EQ(run_command({"sweep", "digits", "--batch", "8,0"}).status, 2);
  EXPECT_EQ(run_command({"sweep", "digits", "--steps", "5", "--epochs", "1"}).status, 2);
  EXPECT_EQ(run_command({"sweep", "digits", "--plot", "/proc/nowhere/plot.svg"}).status, 1);
}

TEST(AdaptiveBatch, grows_in_a_run_and_the_same_seed_gives_the_same_file) {
  const TemporaryFolder folder;
  const auto train = [&](const char* name) {
    const auto result =
        run_command({"train", "digits", "--adaptive-batch", "--batch", "8", "--max-batch", "32", "--epochs", "4",
                     "--save", folder / name, "--log", folder / "log.jsonl", "--json"});
    EXPECT_EQ(result.status, 0) << result.err;
    return result;
  };
  const auto result = train("a");
  const auto json = result.json();
  EXPECT_EQ(json["batch"], 8);
  EXPECT_EQ(json["last_batch"], 32);
  EXPECT_EQ(json["samples"], 4 * 1437);
  EXPECT_EQ(json["steps"], 4 * 360) << "of four samples";
  EXPECT_LT(json["updates"], 720);
  EXPECT_GT(json["test_accuracy"], 0.8);
  EXPECT_THAT(result.err, HasSubstr(": batch 16, noise scale"));
  std::vector<int> sizes;
  std::istringstream log(get(folder / "log.jsonl"));
  for (std::string text; std::getline(log, text);) {
    const auto line = nlohmann::json::parse(text);
    if (line["event"] == "batch") sizes.push_back(line["batch"]);
    if (line["event"] == "step") {
      EXPECT_TRUE(line.contains("noise_scale"));
    }
  }
  EXPECT_EQ(sizes, (std::vector<int>{16, 32}));
  train("b");
  EXPECT_EQ(get(folder / "a"), get(folder / "b"));
}

TEST(AdaptiveBatch, goes_with_16_bits_and_averages) {
  const auto result = run_command({"train", "digits", "--adaptive-batch", "--batch", "16", "--steps", "60",
                                   "--precision", "f16", "--ema", "0.9", "--json", "--quiet"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(result.json()["noise_scale"].is_number() || result.json()["noise_scale"].is_null());
  EXPECT_GT(result.json()["test_accuracy"], 0.2);
}

TEST(AdaptiveBatch, what_it_excludes_is_wrong_usage) {
  const auto expect = [](std::vector<std::string> more, const char* message) {
    std::vector<std::string> words = {"train", "digits"};
    words.insert(words.end(), more.begin(), more.end());
    const auto result = run_command(words);
    EXPECT_EQ(result.status, 2) << message;
    EXPECT_THAT(result.err, HasSubstr(message));
  };
  expect({"--adaptive-batch", "--batch", "9"}, "an even --batch, got 9");
  expect({"--adaptive-batch", "--release-gradients"}, "--release-gradients has thrown away");
  expect({"--adaptive-batch", "--schedule", "onecycle"}, "--schedule onecycle does not go with it");
  expect({"--adaptive-batch", "--max-batch", "32"}, "--max-batch 32 is below the first batch, 64");
  expect({"--max-batch", "32"}, "--adaptive-batch");
}

}  // namespace
}  // namespace samebytes::testing
