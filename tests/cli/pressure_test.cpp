// --pressure-limit: a training run that is short of memory gives up what it can and goes on to the same weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "cli/command.h"
#include "samebytes/io/safetensors.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

class PressureLimitTest : public ::testing::Test {
 protected:
  PressureLimitTest() {
    std::string text;
    for (int i = 0; i < 300; ++i) text += "line " + std::to_string(i * i) + " of a text\n";
    put(text_, text);
  }

  struct Run {
    CommandResult result;
    std::vector<float> weights;
    std::vector<nlohmann::json> actions;
  };
  // Neither dropout nor batch norm: pieces change rounding alone.
  Run train(const std::string& limit) const {
    const std::string file = folder_ / "gpt.safetensors", log = folder_ / "log.jsonl";
    Run run;
    run.result = run_command({"train",
                              "gpt",
                              "--data",
                              text_,
                              "--context",
                              "64",
                              "--batch",
                              "48",
                              "--steps",
                              limit == "1MB" ? "40" : "6",
                              "--optimizer",
                              "sgd",
                              "--rate",
                              "0.1",
                              "--schedule",
                              "constant",
                              "--save",
                              file,
                              "--log",
                              log,
                              "--json",
                              "--quiet",
                              "--pressure-limit",
                              limit});
    std::istringstream lines(get(log));
    for (std::string line; std::getline(lines, line);)
      if (const auto json = nlohmann::json::parse(line); json["event"] == "pressure") run.actions.push_back(json);
    if (run.result.status != 0) return run;
    const io::TensorFile tensors(file);
    for (std::size_t i = 0; i < tensors.tensors().size(); ++i) {
      std::vector<float> values(tensors.tensors()[i].bytes() / sizeof(float));
      tensors.read(i, std::as_writable_bytes(std::span(values)));
      run.weights.insert(run.weights.end(), values.begin(), values.end());
    }
    return run;
  }

  TemporaryFolder folder_;
  std::string text_ = folder_ / "text.txt";
};

TEST_F(PressureLimitTest, a_run_gives_up_batches_ahead_and_large_pieces_and_goes_on) {
  const Run whole = train("1TB");
  ASSERT_EQ(whole.result.status, 0) << whole.result.err;
  EXPECT_TRUE(whole.actions.empty());
  // What it used at its first look, told by one that has far too little.
  const Run stopped = train("1MB");
  EXPECT_EQ(stopped.result.status, 1);
  EXPECT_THAT(stopped.result.err, HasSubstr("nothing is left to give up"));
  ASSERT_FALSE(stopped.actions.empty());
  const double used = stopped.actions.front()["used_bytes"];

  const Run pressed = train(std::to_string(static_cast<std::int64_t>(used * 1.1)));
  ASSERT_EQ(pressed.result.status, 0) << pressed.result.err;
  ASSERT_GE(pressed.actions.size(), 2u);
  std::string all;
  for (const auto& action : pressed.actions) {
    all += action["action"].get<std::string>() + "\n";
    EXPECT_GT(action["used_bytes"].get<double>(), 0.85 * action["limit_bytes"].get<double>());
  }
  EXPECT_THAT(all, HasSubstr("loader: 1 batch in memory instead of 2\nbatches of 48 in pieces of 24: from here on"));
  float largest = 0, difference = 0;
  ASSERT_EQ(pressed.weights.size(), whole.weights.size());
  for (std::size_t i = 0; i < whole.weights.size(); ++i) {
    largest = std::max(largest, std::abs(whole.weights[i]));
    difference = std::max(difference, std::abs(pressed.weights[i] - whole.weights[i]));
  }
  EXPECT_LE(difference, 1e-6f * largest);
}

TEST_F(PressureLimitTest, batch_norms_see_no_pieces_unless_that_is_allowed) {
  const auto pressed = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"train",   "digits", "--batch",          "512", "--steps", "30",
                                   "--quiet", "--json", "--pressure-limit", "1MB", "--log",   folder_ / "digits.jsonl"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(run_command(words).status, 1) << "nothing is enough";
    return get(folder_ / "digits.jsonl");
  };
  EXPECT_THAT(pressed({}), HasSubstr("smaller pieces of a batch would help, but batch norms would see smaller pieces; "
                                     "--allow pieces takes them"));
  EXPECT_THAT(pressed({"--allow", "pieces"}), HasSubstr("batches of 512 in pieces of 256"));
}

}  // namespace
}  // namespace samebytes::testing
