// --lora-rank, --lora-save, --lora: training adapters beside a saved network, and what may be done with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command.h"
#include "samebytes/io/safetensors.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

class LoraCommandTest : public ::testing::Test {
 protected:
  LoraCommandTest() {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "line " + std::to_string(i * i) + " of a text\n";
    put(text_, text);
  }
  CommandResult run(std::vector<std::string> words) const {
    words.insert(words.end(), {"--data", text_, "--context", "16", "--batch", "4", "--json", "--quiet"});
    CommandResult result = run_command(words);
    EXPECT_EQ(result.status, 0) << result.err;
    return result;
  }
  static std::vector<std::byte> tensor(const std::string& path, const std::string& name) {
    const io::TensorFile file(path);
    const auto place = file.find(name);
    EXPECT_TRUE(place) << name;
    return place ? file.read(*place).bytes : std::vector<std::byte>();
  }

  TemporaryFolder folder_;
  std::string text_ = folder_ / "text.txt", base_ = folder_ / "base.safetensors",
              adapters_ = folder_ / "adapters.safetensors", merged_ = folder_ / "merged.safetensors";
};

TEST_F(LoraCommandTest, adapters_are_trained_saved_merged_and_gone_on_with) {
  run({"train", "gpt", "--steps", "2", "--save", base_});
  const auto trained = run({"train", "gpt", "--load", base_, "--steps", "6", "--lora-rank", "4", "--lora-targets",
                            "c_attn,c_fc", "--rate", "1e-2", "--save", merged_, "--lora-save", adapters_});
  const io::TensorFile alone(adapters_), whole(merged_), base(base_);
  EXPECT_EQ(alone.tensors().size(), 16u);
  EXPECT_EQ(whole.tensors().size(), base.tensors().size());
  EXPECT_EQ(tensor(merged_, "wte.weight"), tensor(base_, "wte.weight"));
  EXPECT_EQ(tensor(merged_, "h.0.mlp.c_proj.weight"), tensor(base_, "h.0.mlp.c_proj.weight"));
  EXPECT_NE(tensor(merged_, "h.0.attn.c_attn.weight"), tensor(base_, "h.0.attn.c_attn.weight"));
  // The network with its adapters and the merged one are the same.
  const double want = trained.json()["test_loss"];
  EXPECT_NEAR(run({"eval", "gpt", "--load", merged_}).json()["test_loss"], want, 1e-4 * want);
  EXPECT_NEAR(run({"eval", "gpt", "--load", base_, "--lora", adapters_}).json()["test_loss"], want, 1e-4 * want);
  const double before = run({"eval", "gpt", "--load", base_}).json()["test_loss"];
  EXPECT_LT(want, before);
  const auto written =
      run_command({"generate", "--load", base_, "--lora", adapters_, "--prompt", "line", "--tokens", "3"});
  EXPECT_EQ(written.status, 0) << written.err;
  const auto more = run({"train", "gpt", "--load", base_, "--lora", adapters_, "--steps", "1", "--rate", "1e-9"});
  EXPECT_NEAR(more.json()["test_loss"], want, 1e-4 * want);
}

TEST_F(LoraCommandTest, composes_with_the_other_techniques) {
  const std::string log = folder_ / "log.jsonl";
  const auto all = run({"train",
                        "gpt",
                        "--steps",
                        "3",
                        "--lora-rank",
                        "2",
                        "--lora-dropout",
                        "0.1",
                        "--precision",
                        "bf16",
                        "--gradient-checkpointing",
                        "block",
                        "--micro-batch",
                        "2",
                        "--moments",
                        "bf16",
                        "--ema",
                        "0.9",
                        "--save",
                        merged_,
                        "--log",
                        log});
  EXPECT_EQ(all.json()["bytes_copied_per_step"], 0);
  EXPECT_THAT(get(log), HasSubstr("\"trainable_parameters\":4096"));
  const auto bench = run_command({"bench", "gpt", "--mode", "train", "--steps", "2", "--lora-rank", "4", "--json"});
  ASSERT_EQ(bench.status, 0) << bench.err;
  const auto plain = run_command({"bench", "gpt", "--mode", "train", "--steps", "2", "--json"});
  EXPECT_LT(bench.json()[0]["peak_bytes"], plain.json()[0]["peak_bytes"]);
}

TEST_F(LoraCommandTest, a_run_goes_on_where_it_was) {
  const std::string one = folder_ / "one", log = folder_ / "log.jsonl";
  const std::vector<std::string> words{"train", "gpt", "--lora-rank", "2", "--schedule", "constant", "--rate", "1e-2"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> result = words;
    result.insert(result.end(), more.begin(), more.end());
    return run(result);
  };
  with({"--steps", "6", "--lora-save", adapters_});
  with({"--steps", "3", "--checkpoint", one, "--checkpoint-every", "3"});
  with({"--steps", "6", "--checkpoint", one, "--resume", "auto", "--lora-save", merged_});
  EXPECT_EQ(get(adapters_), get(merged_));
}

TEST_F(LoraCommandTest, what_does_not_go_together_is_refused) {
  const auto refuses = [&](std::vector<std::string> words, const std::string& message) {
    words.insert(words.begin(), {"train", "digits", "--steps", "1"});
    const auto result = run_command(words);
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.err, HasSubstr(message));
  };
  refuses({"--lora-alpha", "8"}, "--lora-alpha needs --lora-rank R");
  refuses({"--lora-dropout", "0.1"}, "--lora-dropout needs --lora-rank R");
  refuses({"--lora-targets", "fc"}, "--lora-targets needs --lora-rank R");
  refuses({"--lora-save", adapters_}, "--lora-save needs --lora-rank R or --lora FILE");
  refuses({"--lora-rank", "2", "--lora", adapters_}, "--lora-rank makes new adapters");
  refuses({"--lora-rank", "2", "--lora-targets", "q_proj"},
          "--lora-targets: apply_lora: targets has q_proj, which matches no linear layer; there are 13");
  refuses({"--lora-rank", "0"}, "--lora-rank");
}

}  // namespace
}  // namespace samebytes::testing
