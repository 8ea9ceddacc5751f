// --accumulate, --micro-batch and --gradient-checkpointing: the training of a large batch in less memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "cli/command.h"
#include "samebytes/device.h"
#include "samebytes/io/safetensors.h"
#include "support/files.h"
#include "support/quirks.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

class AccumulateTest : public ::testing::Test {
 protected:
  AccumulateTest() {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "line " + std::to_string(i * i) + " of a text\n";
    put(text_, text);
  }

  struct Run {
    std::vector<float> weights;
    nlohmann::ordered_json summary;
    std::vector<double> losses;  // of each step
  };
  // No dropout and no batch norm: all that depends on how a batch is cut is rounding.
  Run train(std::vector<std::string> more) const {
    const std::string file = folder_ / "gpt.safetensors", log = folder_ / "log.jsonl";
    std::vector<std::string> words{"train",  "gpt",         "--data", text_,    "--context", "16",         "--steps",
                                   "4",      "--optimizer", "sgd",    "--rate", "0.1",       "--schedule", "constant",
                                   "--save", file,          "--log",  log,      "--json",    "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.status, 0) << result.err;
    Run run;
    run.summary = result.json();
    const io::TensorFile tensors(file);
    for (std::size_t i = 0; i < tensors.tensors().size(); ++i) {
      std::vector<float> values(tensors.tensors()[i].bytes() / sizeof(float));
      tensors.read(i, std::as_writable_bytes(std::span(values)));
      run.weights.insert(run.weights.end(), values.begin(), values.end());
    }
    std::istringstream lines(get(log));
    for (std::string line; std::getline(lines, line);)
      if (const auto json = nlohmann::json::parse(line); json["event"] == "step") run.losses.push_back(json["loss"]);
    return run;
  }

  static void expect_equal(const Run& came, const Run& want) {
    ASSERT_EQ(came.weights.size(), want.weights.size());
    float largest = 0, difference = 0;
    for (std::size_t i = 0; i < want.weights.size(); ++i) {
      largest = std::max(largest, std::abs(want.weights[i]));
      difference = std::max(difference, std::abs(came.weights[i] - want.weights[i]));
    }
    EXPECT_GT(largest, 0.5f);
    EXPECT_LE(difference, 1e-6f * largest);
    ASSERT_EQ(came.losses.size(), want.losses.size());
    for (std::size_t i = 0; i < want.losses.size(); ++i) EXPECT_NEAR(came.losses[i], want.losses[i], 1e-5);
    EXPECT_EQ(came.summary["steps"], want.summary["steps"]);
    EXPECT_EQ(came.summary["samples"], want.summary["samples"]);
    EXPECT_EQ(came.summary["bytes_copied_per_step"], 0);
  }

  TemporaryFolder folder_;
  std::string text_ = folder_ / "text.txt";
};

TEST_F(AccumulateTest, batches_and_pieces_make_the_update_of_the_large_batch) {
  const Run whole = train({"--batch", "24"});
  ASSERT_EQ(whole.losses.size(), 4u);
  expect_equal(train({"--batch", "8", "--accumulate", "3"}), whole);
  expect_equal(train({"--batch", "24", "--micro-batch", "10"}), whole);  // 10, 10 and 4
}

TEST_F(AccumulateTest, several_devices_make_the_same_update) {
  SAMEBYTES_NEEDS_PARTS();
  const Run whole = train({"--batch", "24"});
  expect_equal(train({"--batch", "8", "--accumulate", "3", "--split-device", "1,1"}), whole);
  expect_equal(train({"--batch", "24", "--micro-batch", "10", "--split-device", "1,1"}), whole);
  const auto scaled = run_command({"train", "digits", "--precision", "f16", "--steps", "3", "--micro-batch", "24",
                                   "--accumulate", "2", "--split-device", "1,1", "--json", "--quiet"});
  ASSERT_EQ(scaled.status, 0) << scaled.err;
  EXPECT_LE(scaled.json()["skipped_steps"], 2);
}

TEST_F(AccumulateTest, an_epochs_last_group_is_not_lost) {
  // 1437 digits in batches of 512 are three, the last of 413; two of them are an update.
  const auto result =
      run_command({"train", "digits", "--batch", "512", "--accumulate", "2", "--epochs", "1", "--json", "--quiet"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.json()["steps"], 2);
  EXPECT_EQ(result.json()["samples"], 1437);
}

TEST_F(AccumulateTest, checkpointing_trains_to_the_same_bytes) {
  const Run whole = train({"--batch", "8"});
  for (const char* how : {"block", "sqrt"})
    EXPECT_EQ(train({"--batch", "8", "--gradient-checkpointing", how}).weights, whole.weights) << how;
}

TEST_F(AccumulateTest, scaled_gradients_in_pieces_train) {
  const auto result = run_command({"train", "digits", "--precision", "f16", "--steps", "12", "--micro-batch", "24",
                                   "--accumulate", "2", "--json", "--quiet"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_LE(result.json()["skipped_steps"], 2) << "the first scale may be too large";
  EXPECT_EQ(result.json()["samples"], 1437) << "an epoch: 22 batches of 64 and one of 29";
}

TEST_F(AccumulateTest, what_does_not_go_together_is_refused) {
  const auto refuses = [](std::vector<std::string> words, const std::string& message) {
    words.insert(words.begin(), {"train", "digits", "--steps", "1"});
    const auto result = run_command(words);
    EXPECT_NE(result.status, 0);
    EXPECT_THAT(result.err, HasSubstr(message));
  };
  const std::string release = "--release-gradients updates parameters as soon as their gradients are there, but ";
  refuses({"--release-gradients", "--accumulate", "2"},
          release + "--accumulate adds up the gradients of several batches first; use one of the two");
  refuses({"--release-gradients", "--micro-batch", "8"},
          release + "--micro-batch adds up the gradients of several pieces first; use one of the two");
  refuses({"--release-gradients", "--precision", "f16"},
          release + "--precision f16 looks for overflows in all of them first; use one of the two");
  refuses({"--release-gradients", "--clip-norm", "1"},
          "release_gradients updates parameters before all gradients are there, so clip_norm must be 0");
  refuses({"--gradient-checkpointing", "some"}, "expected off, block, sqrt or a number of blocks above 0, got some");
  const auto lstm =
      run_command({"bench", "vowels", "--steps", "1", "--mode", "train", "--gradient-checkpointing", "2"});
  EXPECT_EQ(lstm.status, 2);
  EXPECT_THAT(lstm.err, HasSubstr("--gradient-checkpointing: "));
}

}  // namespace
}  // namespace samebytes::testing
