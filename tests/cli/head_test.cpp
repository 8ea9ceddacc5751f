// --head-chunks and --late-head-gradient: the same training without all logits at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/command.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

TEST(Head, chunks_train_to_the_same_loss) {
  const TemporaryFolder folder;
  const std::string text = folder / "text.txt", log = folder / "log.jsonl";
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += "line " + std::to_string(i * i) + " of a text\n";
  put(text, lines);
  const auto train = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"train",   "gpt", "--data", text, "--context", "16",
                                   "--steps", "3",   "--log",  log,  "--json",    "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.json();
  };
  const auto whole = train({}), chunked = train({"--head-chunks", "5"});
  EXPECT_THAT(get(log), HasSubstr(R"("head_chunks":"5")"));
  const auto late = train({"--head-chunks", "5", "--late-head-gradient", "--clip-norm", "0", "--release-gradients"});
  EXPECT_NEAR(chunked["train_loss"].get<double>(), whole["train_loss"].get<double>(), 1e-5);
  EXPECT_NEAR(chunked["test_loss"].get<double>(), whole["test_loss"].get<double>(), 1e-4);
  EXPECT_NEAR(late["train_loss"].get<double>(), whole["train_loss"].get<double>(), 0.2);  // not clipped
}

TEST(Head, who_has_none_is_told) {
  const auto none = run_command({"train", "digits", "--steps", "1", "--head-chunks", "4"});
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("--head-chunks: digits has no product with classes at its end that could be cut"));
  const auto late = run_command({"bench", "gpt", "--mode", "train", "--steps", "1", "--late-head-gradient"});
  EXPECT_EQ(late.status, 2);
  EXPECT_THAT(late.err, HasSubstr("--late-head-gradient needs --head-chunks N|auto"));
  const auto wrong = run_command({"bench", "gpt", "--head-chunks", "some"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--head-chunks: expected auto or a whole number, at least 0, got some"));
}

TEST(Head, a_memory_limit_may_cut_it) {
  const std::vector<std::string> step{"bench",       "gpt",     "--mode", "train",         "--steps",
                                      "2",           "--batch", "8",      "--context",     "64",
                                      "--clip-norm", "0",       "--json", "--memory-limit"};
  const auto with = [&](const std::string& limit) {
    std::vector<std::string> words = step;
    words.push_back(limit);
    return run_command(words);
  };
  const auto failed = with("1MB");
  EXPECT_EQ(failed.status, 1);
  EXPECT_THAT(failed.err, HasSubstr("chunked head"));
  const std::size_t open = failed.err.find('(', failed.err.find("the smallest step"));  // a device's name may have one
  const std::string bytes = failed.err.substr(open + 1, failed.err.find(' ', open) - open - 1);
  const auto result = with(bytes);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.json()[0]["planned_peak_bytes"].dump(), bytes);
}

}  // namespace
}  // namespace samebytes::testing
