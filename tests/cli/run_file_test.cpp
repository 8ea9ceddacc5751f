// Run files: options as YAML, what the command line says beside them, what is refused and where, and the examples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/command.h"
#include "support/files.h"
#include "support/source_tree.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// What --print-config says of a file; it runs nothing.
CommandResult print_config(const std::string& text, std::vector<std::string> more = {}, const char* verb = "train") {
  const TemporaryFolder folder;
  put(folder / "run.yaml", text);
  std::vector<std::string> words = {verb, folder / "run.yaml", "--print-config"};
  words.insert(words.end(), more.begin(), more.end());
  return run_command(words);
}

TEST(RunFile, trains_as_its_options_on_the_command_line_do) {
  const TemporaryFolder folder;
  put(folder / "run.yaml",
      "workload: digits\n"
      "training: {steps: 12, batch: 32}\n"
      "optimizer:\n"
      "  rate: 1e-2\n"
      "  weight_decay: 0.05  # or weight-decay\n"
      "output:\n"
      "  json: true\n"
      "  quiet: yes\n");
  const auto by_file = run_command({"train", folder / "run.yaml"});
  const auto by_words = run_command({"train", "digits", "--steps", "12", "--batch", "32", "--rate", "1e-2",
                                     "--weight-decay", "0.05", "--json", "--quiet"});
  ASSERT_EQ(by_file.status, 0) << by_file.err;
  EXPECT_EQ(by_file.json()["steps"], 12);
  EXPECT_EQ(by_file.json()["batch"], 32);
  EXPECT_EQ(by_file.json()["rate"], 1e-2);
  EXPECT_EQ(by_file.json()["test_loss"], by_words.json()["test_loss"]);
}

TEST(RunFile, the_command_line_wins) {
  const std::string text = "workload: digits\nbatch: 32\nquiet: true\nrate: 0.01\n";
  const auto result = print_config(text, {"--batch", "8", "--quiet=false", "--rate=0.5"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* line : {"\nworkload: digits\n", "\nbatch: 8\n", "\nquiet: false\n", "\nrate: 0.5\n"})
    EXPECT_THAT(result.out, HasSubstr(line));
  EXPECT_THAT(print_config(text, {"mlp"}).out, HasSubstr("\nworkload: mlp\n"));
}

TEST(RunFile, what_is_printed_is_a_run_file_again) {
  const auto first = run_command({"train", "gpt", "--size", "small", "--data", "a b/text.txt", "--rate", "6e-4",
                                  "--json", "--optimizer", "lamb", "--print-config"});
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("\n# epochs: N  # passes over the training set"));
  const auto again = print_config(first.out);
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out, first.out);
}

// Written out, the last list would have ten thousand million million texts.
TEST(RunFile, aliases_and_nesting_do_not_explode) {
  std::string lists = "[&a0 [x, x, x, x, x, x, x, x, x, x]";
  for (int i = 1; i < 16; ++i) {
    lists += ", &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) lists += (k > 0 ? ", *a" : "*a") + std::to_string(i - 1);
    lists += "]";
  }
  lists += "]\n";
  const auto result = print_config("workload: " + lists);
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("run.yaml:1: workload: expected names, got a list among them"));
  EXPECT_THAT(print_config("workload: digits\nsteps: " + lists).err,
              HasSubstr("run.yaml:2: steps: expected a whole number, got a list"));
  EXPECT_THAT(print_config("workload: digits\nseed: " + std::string(100000, '[')).err,
              HasSubstr("run.yaml:2: this is not YAML: "));
}

TEST(RunFile, refuses_with_the_line_and_what_is_wanted) {
  struct Case {
    const char* text;
    const char* message;
  };
  const std::vector<Case> cases = {
      {"workload: digits\nbatchs: 3\n", "run.yaml:2: train has no option batchs, did you mean batch?"},
      {"workload: digits\noptimizer:\n  momentun: 0.9\n", "run.yaml:3: train has no option momentun, did you mean mom"},
      {"workload: digits\nsteps: many\n", "run.yaml:2: steps: expected a whole number, at least 1, got many"},
      {"workload: digits\nsteps: 1.5\n", "run.yaml:2: steps: expected a whole number, at least 1, got 1.5"},
      {"workload: digits\nsteps: \"64\"\n", "run.yaml:2: steps: expected a whole number, got the text \"64\""},
      {"workload: digits\nsteps: [1, 2]\n", "run.yaml:2: steps: expected a whole number, got a list"},
      {"workload: digits\nseed: -x\n", "run.yaml:2: seed: expected a whole number, at least 0, got -x"},
      {"workload: digits\nrate: fast\n", "run.yaml:2: rate: expected a number above 0, got fast"},
      {"workload: digits\nrate: -0.1\n", "run.yaml:2: rate: expected a number above 0, got -0.1"},
      {"workload: digits\n\nbatch: 0\n", "run.yaml:3: batch: "},
      {"workload: digits\nquiet: 3\n", "run.yaml:2: quiet: expected true or false, got 3"},
      {"workload: digits\nlog: {a: b}\n", "run.yaml:2: log: expected a text, got a section"},
      {"workload: digits\noptimizer: adamv\n", "run.yaml:2: optimizer: "},
      {"workload: digits\nmodel: gpt\n", "run.yaml:2: model is a section"},
      {"workload: digits\nmodell:\n  size: nano\n", "run.yaml:2: train has no option modell"},
      {"workload: digits\nrate: 1\noptimizer: {rate: 2}\n", "run.yaml:3: rate was given before, in line 2"},
      {"workload: digits\nprint-config: true\n", "run.yaml:2: train has no option print-config"},
      {"workload: {a: 1}\n", "run.yaml:1: workload: expected a name, got a section"},
      {"- digits\n", "run.yaml:1: a run file is lines of `option: value`"},
      {"workload: digits\nbatch: [1\n", "run.yaml:"},
      {"batch: 3\n", "lacks `workload: NAME`, which says what to train"},
      {"", "lacks `workload: NAME`"},
  };
  for (const Case& c : cases) {
    const auto result = print_config(c.text);
    EXPECT_EQ(result.status, 2) << c.text << result.out;
    EXPECT_THAT(result.err, StartsWith("samebytes: ")) << c.text;
    EXPECT_THAT(result.err, HasSubstr(c.message)) << c.text;
  }
  EXPECT_THAT(run_command({"train", "missing.yaml"}).err, HasSubstr("missing.yaml cannot be read: No such file"));
  EXPECT_THAT(run_command({"train", "a.yaml", "b.yml"}).err, HasSubstr("expected one run file, got a.yaml and b.yml"));
}

TEST(RunFile, nothing_means_the_default) {
  const auto result = print_config("workload: digits\nepochs:\nrate: ~\n");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\n# epochs: N"));
}

TEST(RunFile, other_verbs_take_what_they_have_and_say_what_they_leave) {
  const TemporaryFolder folder;
  put(folder / "run.yaml", "workload: digits\nbatch: 4\nrate: 0.01\nepochs: 2\n");
  const auto result = run_command({"bench", folder / "run.yaml", "--mode", "train", "--steps", "1"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("run.yaml: bench does without rate, epochs"));
  EXPECT_THAT(print_config("workload: [mlp, cnn]\n", {}, "bench").out, HasSubstr("\nworkload: [mlp, cnn]\n"));
  EXPECT_THAT(print_config("workload: mlp\nload: net.safetensors\n", {}, "eval").out, HasSubstr("load: net.saf"));
  EXPECT_THAT(print_config("workload: mlp\nby: layer\n", {}, "profile").out, HasSubstr("\nby: layer\n"));
  EXPECT_EQ(print_config("workload: mlp\ncolour: red\n", {}, "bench").status, 2);
}

// A value of an option that looks like a run file is none.
TEST(RunFile, is_not_the_value_of_an_option) {
  const auto result = run_command({"train", "digits", "--save", "net.yaml", "--print-config"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\nsave: net.yaml\n"));
}

TEST(RunFile, every_example_is_whole_and_two_of_them_train_a_step) {
  const auto files = source_files({"examples/configs"}, {".yaml"});
  ASSERT_EQ(files.size(), 9u);
  for (const auto& file : files) {
    EXPECT_THAT(file.text, StartsWith("# ")) << file.path;
    EXPECT_THAT(file.text, HasSubstr(file.path)) << "the head shows the command";
    const std::string path = std::string(source_folder()) + "/" + file.path;
    const auto config = run_command({"train", path, "--print-config"});
    EXPECT_EQ(config.status, 0) << file.path << config.err;
    std::vector<std::string> words = {"bench", path,      "--mode", "train",  "--steps",
                                      "1",     "--batch", "2",      "--json", "--quiet"};
    // Between them these two have both workloads, both 16-bit types and gradient release.
    if (file.path.find("gpt_small_fp16") == std::string::npos && file.path.find("transit_opt") == std::string::npos)
      continue;
    if (file.path.find("gpt") != std::string::npos) words.insert(words.end(), {"--size", "nano", "--context", "8"});
    const auto result = run_command(words);
    ASSERT_EQ(result.status, 0) << file.path << result.err;
    EXPECT_TRUE(result.json()[0]["train_loss"].is_number()) << file.path;
  }
}

}  // namespace
}  // namespace samebytes::testing
