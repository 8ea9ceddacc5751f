// What the command says to a newcomer and to a wrong command line. None of this needs a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/command.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Usage, help_names_every_verb_and_where_to_start) {
  const auto result = run_command({"--help"});
  EXPECT_EQ(result.status, 0);
  for (const char* verb : {"devices", "train", "eval", "bench", "samebytes train digits"})
    EXPECT_THAT(result.out, HasSubstr(verb));
}

TEST(Usage, help_of_train_explains_every_option) {
  const auto result = run_command({"train", "--help"});
  EXPECT_EQ(result.status, 0);
  for (const char* option : {"--checkpoint",
                             "--keep",
                             "--resume",
                             "--on-device-error",
                             "--data",
                             "--epochs",
                             "--steps",
                             "--batch",
                             "--rate",
                             "--schedule",
                             "--device",
                             "--workers",
                             "--slots",
                             "--seed",
                             "--threads",
                             "--load",
                             "--save",
                             "--log",
                             "--check-nan",
                             "--json",
                             "--quiet",
                             "digits",
                             "mlp",
                             "cnn",
                             "slower",
                             "--optimizer",
                             "--warmup",
                             "--gamma",
                             "--every",
                             "--weight-decay",
                             "--momentum",
                             "--clip-norm",
                             "--ema",
                             "--scale-rate",
                             "--base-batch",
                             "lamb",
                             "onecycle",
                             "plateau",
                             "--adaptive-batch",
                             "--max-batch"})
    EXPECT_THAT(result.out, HasSubstr(option));
}

TEST(Usage, help_lines_fit_a_terminal) {
  for (const char* verb : {"devices", "train", "eval", "bench", "sweep"}) {
    const std::string text = run_command({verb, "--help"}).out;
    std::size_t begin = 0;
    while (begin < text.size()) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      EXPECT_LE(end - begin, 120u) << verb << ": " << text.substr(begin, end - begin);
      begin = end + 1;
    }
  }
}

TEST(Usage, the_version_has_commit_build_parts_and_drivers_as_lines_and_as_json) {
  const auto result = run_command({"--version"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, StartsWith("samebytes 0."));
  const auto json = run_command({"--version", "--json"}).json();
  ASSERT_TRUE(json.is_object());
  EXPECT_THAT(result.out, StartsWith("samebytes " + json["version"].get<std::string>()));
  if (!json["commit"].is_null()) {
    EXPECT_THAT(result.out, HasSubstr(", commit " + json["commit"].get<std::string>()));
  }
  for (const char* word : {"type", "compiler"}) {
    EXPECT_FALSE(json["build"][word].get<std::string>().empty()) << word;
    EXPECT_THAT(result.out, HasSubstr(json["build"][word].get<std::string>()));
  }
  for (const char* list : {"parts", "drivers"})
    for (const auto& word : json[list]) EXPECT_THAT(result.out, HasSubstr(word.get<std::string>())) << list;
}

TEST(Usage, wrong_command_lines_end_with_2_and_one_clear_line) {
  const std::vector<std::vector<std::string>> wrong = {
      {"train"},
      {"train", "digits", "--batch", "0"},
      {"train", "digits", "--batch", "many"},
      {"train", "digits", "--epochs", "-1"},
      {"train", "digits", "--rate", "-0.1"},
      {"train", "digits", "--schedule", "zigzag"},
      {"train", "digits", "--optimizer", "zigzag"},
      {"train", "digits", "--optimizer", "adagrad", "--momentum", "0.5"},
      {"train", "digits", "--schedule", "onecycle", "--warmup", "5"},
      {"train", "digits", "--base-batch", "5"},
      {"train", "digits", "--colour", "red"},
      {"train", "digits", "mlp"},
      {"train", "cnn"},
      {"eval", "digits", "--load", "x", "--device", "all"},
      {"tune", "--device", "cpu:0,cpu:1"},
      {"train", "digits", "--split-device", "0"},
      {"eval", "digits"},
      {"bench", "--steps", "0"},
      {"devices", "--quiet"},
  };
  for (const auto& words : wrong) {
    const auto result = run_command(words);
    EXPECT_EQ(result.status, 2) << ::testing::PrintToString(words) << result.err;
    EXPECT_THAT(result.err, StartsWith("samebytes: ")) << ::testing::PrintToString(words);
    EXPECT_EQ(result.out, "") << ::testing::PrintToString(words);
  }
}

TEST(Usage, a_mistake_is_named_with_what_was_meant) {
  struct Case {
    std::vector<std::string> words;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{"--verison"}, "there is no option --verison, did you mean --version?"},
      {{"train", "digits", "--epoch", "3"}, "train has no option --epoch, did you mean --epochs?"},
      {{"train", "digits", "-lr", "0.1"}, "train has no option -lr, did you mean --lr?"},
      {{"bench", "digits", "--epochs=3"}, "bench has no option --epochs (train, finetune, sweep have it)"},
      {{"train", "digits", "--rate"}, "--rate lacks its value: --rate R"},
      {{"train", "digits", "--lr", "abc"}, "--rate: expected a number above 0, got abc"},
      {{"train", "digits", "--workers", "x"}, "--workers: expected a whole number from 0 to 1024, got x"},
      {{"train", "digits", "--steps", "1.5"}, "--steps: expected a whole number, at least 1, got 1.5"},
      {{"train", "digits", "--seed", "-1"}, "--seed: expected a whole number, at least 0, got -1"},
      {{"train", "digits", "--clip-norm", "x"}, "--clip-norm: expected a number, at least 0, got x"},
      {{"train", "digits", "--optimizer", "adm"}, "adafactor, got adm, did you mean adam?"},
      {{"train", "digits", "--quiet=3"}, "--quiet takes no value, got 3"},
      {{"train", "digits", "mlp"}, "expected `samebytes train WORKLOAD`, got mlp too"},
      {{"devices", "all"}, "expected `samebytes devices`, got all too"},
      {{"train"}, "train needs WORKLOAD"},
      {{"train", "digits", "--rate", "inf"}, "--rate: expected a number above 0, got inf"},
      {{"train", "digits", "--lr", "1e400"}, "--rate: expected a number above 0, got 1e400"},
      {{"train", "digits", "--steps", "3", "--steps", "4"}, "--steps comes twice; give it once"},
      {{"train", "digits", "--steps="}, "--steps lacks its value: --steps N"},
      {{"train", "digits", "--save", ""}, "--save lacks its value: --save FILE"},
      {{"train", "digits", "--help=3"}, "--help takes no value"},
      {{"train", ""}, "there is no workload ''; there are digits, mlp"},
      {{"train", "mnist"},
       "mnist is a data set: `samebytes data mnist` gets it, `samebytes train cnn --data data/mnist`"},
      {{"new", "op", "3x"}, "NAME: expected a name of letters, digits and _ that begins with a letter, got 3x"},
      {{"new", "layer", "x"}, "WHAT: expected op, got layer"},
      {{"--version", "now"}, "expected `samebytes --version [--json]`, got now too"},
      {{"trian", "digits"}, "there is no verb trian, did you mean train?\n"},
      {{"colour"}, "there is no verb colour; there are devices, train"},
      {{"train", "digits", "--batch", "5000"}, "is larger than the training set, which has 1 437 samples"},
      {{"eval", "digits", "--load", "x", "--device", "cpu:0,cpu:0"}, "eval uses one device"},
      {{"eval", "digits"}, "eval needs --load FILE"},
  };
  for (const Case& wrong : cases) {
    const auto result = run_command(wrong.words);
    EXPECT_EQ(result.status, 2) << wrong.message;
    EXPECT_THAT(result.err, HasSubstr(wrong.message)) << result.err;
    EXPECT_EQ(result.out, "") << wrong.message;
  }
}

TEST(Usage, help_and_version_are_found_where_people_look_for_them) {
  const std::string help = run_command({"train", "--help"}).out, version = run_command({"--version"}).out;
  EXPECT_THAT(help, HasSubstr("\nUsage: samebytes train WORKLOAD [options]\n"));
  EXPECT_THAT(help, HasSubstr("\n  WORKLOAD "));
  EXPECT_THAT(help, ::testing::Not(HasSubstr("\n\n\n")));
  EXPECT_EQ(run_command({"help", "train"}).out, help);
  const std::string all = run_command({"--help"}).out;
  EXPECT_THAT(all, HasSubstr("Usage: samebytes VERB [options]"));
  EXPECT_EQ(run_command(std::vector<std::string>{"help"}).out, all);
  EXPECT_EQ(run_command(std::vector<std::string>{"version"}).out, version);
  EXPECT_EQ(run_command({"-V"}).out, version);
}

TEST(Usage, no_words_at_all_show_the_help_as_an_error) {
  const auto result = run_command(std::vector<std::string>{});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("train"));
}

TEST(Usage, an_unknown_workload_lists_what_there_is_and_the_nearest_name) {
  const auto result = run_command({"train", "digit"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("there is no workload digit, did you mean digits?"));
  EXPECT_THAT(result.err, HasSubstr("mlp"));
  EXPECT_EQ(run_command({"bench", "resnet2000"}).status, 2);
}

TEST(Usage, an_unknown_verb_gets_the_nearest_one) {
  const auto result = run_command({"trian", "digits"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("did you mean train?"));
}

TEST(Usage, a_workload_that_needs_data_says_so) {
  EXPECT_THAT(run_command({"train", "cnn"}).err, HasSubstr("--data DIR"));
}

}  // namespace
}  // namespace samebytes::testing
