// The workloads beside the digits: a few steps of each on made-up data, what each reads, and text from a trained gpt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/command.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kText =
    "to be, or not to be, that is the question: whether 'tis nobler in the mind to suffer the slings and arrows of "
    "outrageous fortune, or to take arms against a sea of troubles and by opposing end them. to die - to sleep, no "
    "more; and by a sleep to say we end the heart-ache and the thousand natural shocks that flesh is heir to.\n";

TEST(Workloads, every_one_trains_and_infers_on_made_up_data) {
  const auto result = run_command({"bench", "resnet20", "series", "transit", "speech", "vowels", "gpt", "--steps", "2",
                                   "--batch", "2", "--json", "--quiet"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto rows = result.json();
  ASSERT_EQ(rows.size(), 12u);
  for (const auto& row : rows) {
    EXPECT_GT(row["gflops"], 0.0) << row.dump();
    if (row["memory_mode"] == "fine") {
      EXPECT_EQ(row["bytes_copied_per_step"], 0) << row.dump();
    }
    if (row["mode"] == "train") {
      EXPECT_TRUE(row["train_loss"].is_number()) << row.dump();
    }
  }
}

TEST(Workloads, say_what_they_read) {
  const std::vector<std::pair<std::string, std::string>> needs = {{"resnet20", "CIFAR-10"},
                                                                  {"series", "UCR"},
                                                                  {"speech", ".wav"},
                                                                  {"vowels", "JapaneseVowels"},
                                                                  {"gpt", "a text file"}};
  for (const auto& [workload, what] : needs) {
    const auto result = run_command({"train", workload});
    EXPECT_EQ(result.status, 2) << workload;
    EXPECT_THAT(result.err, HasSubstr(what)) << workload;
    EXPECT_THAT(result.err, HasSubstr("--data")) << workload;
  }
}

TEST(Workloads, refuse_options_that_are_not_theirs) {
  EXPECT_THAT(run_command({"bench", "mlp", "--size", "small"}).err, HasSubstr("mlp has no --size"));
  EXPECT_THAT(run_command({"bench", "cnn", "--context", "8"}).err, HasSubstr("cnn has no --context"));
  EXPECT_THAT(run_command({"bench", "gpt", "--size", "huge"}).err, StartsWith("samebytes: "));
  const auto longer = run_command({"bench", "gpt", "--size", "small", "--context", "2048"});
  EXPECT_EQ(longer.status, 2);
  EXPECT_THAT(longer.err, HasSubstr("at most 1024"));
  EXPECT_THAT(run_command({"train", "series", "--data", "."}).err, HasSubstr("--name SET"));
}

TEST(Workloads, gpt_learns_a_text_and_generate_goes_on_from_it) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 20; ++i) text += kText;
  put(folder / "text.txt", text);
  const auto trained = run_command({"train", "gpt", "--data", folder / "text.txt", "--context", "16", "--steps", "60",
                                    "--save", folder / "gpt.safetensors", "--json", "--quiet"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_LT(trained.json()["test_loss"], 2.9);  // of about 30 characters, evenly: 3.4
  EXPECT_FALSE(trained.json().contains("test_accuracy"));

  const std::vector<std::string> words = {"generate", "--load", folder / "gpt.safetensors", "--prompt", "to be",
                                          "--tokens", "40"};
  const auto first = run_command(words), again = run_command(words);
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, StartsWith("to be"));
  EXPECT_EQ(first.out.size(), 5u + 40u + 1u);
  EXPECT_EQ(first.out, again.out) << "the same seed gives the same text";
  auto as_json = words;
  as_json.push_back("--json");
  EXPECT_EQ(run_command(as_json).json()["text"].get<std::string>() + "\n", first.out);

  auto wrong = words;
  wrong[4] = "QUARTZ";
  EXPECT_EQ(run_command(wrong).status, 2);
  EXPECT_THAT(run_command(wrong).err, HasSubstr("--prompt"));
  EXPECT_EQ(run_command({"generate"}).status, 2);
  put(folder / "other.safetensors", "nonsense");
  EXPECT_EQ(run_command({"generate", "--load", folder / "other.safetensors"}).status, 1);
}

}  // namespace
}  // namespace samebytes::testing
