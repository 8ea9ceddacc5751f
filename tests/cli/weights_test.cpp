// --weights: bf16 weights with nothing wider beside them, trained, saved and gone on with, and who cannot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command.h"
#include "samebytes/io/safetensors.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

CommandResult train(std::vector<std::string> more) {
  std::vector<std::string> words{"train", "digits", "--precision", "bf16", "--weights", "bf16"};
  words.insert(words.end(), more.begin(), more.end());
  return run_command(words);
}

TEST(Weights, bf16_alone_train_as_well_and_are_saved_as_they_are) {
  const TemporaryFolder folder;
  const std::string file = folder / "net.safetensors";
  const auto result = train({"--steps", "60", "--save", file});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("weights in bf16"));
  const io::TensorFile tensors(file);
  EXPECT_EQ(tensors.tensors()[*tensors.find("0.weight")].dtype, bf16);
  EXPECT_EQ(tensors.tensors()[*tensors.find("13.bias")].dtype, f32);
  const auto json = run_command({"eval", "digits", "--load", file, "--json"}).json();
  EXPECT_GT(json["test_accuracy"], 0.5);
}

TEST(Weights, a_run_with_them_goes_on_bit_for_bit) {
  const TemporaryFolder folder;
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--schedule", "constant", "--moments", "bf16", "--ema", "0.9", "--quiet"});
    const auto result = train(more);
    EXPECT_EQ(result.status, 0) << result.err;
  };
  const std::string whole = folder / "whole.safetensors", parts = folder / "parts.safetensors", kept = folder / "kept";
  run({"--steps", "8", "--save", whole});
  run({"--steps", "5", "--checkpoint", kept, "--checkpoint-every", "5"});
  run({"--steps", "8", "--checkpoint", kept, "--resume", "auto", "--save", parts});
  EXPECT_EQ(get(whole), get(parts));
}

TEST(Weights, adapters_stay_f32_beside_frozen_ones_in_bf16) {
  const auto result = run_command(
      {"bench", "gpt", "--mode", "train", "--steps", "2", "--precision", "bf16", "--json", "--lora-rank", "4"});
  const auto narrow = run_command({"bench", "gpt", "--mode", "train", "--steps", "2", "--precision", "bf16", "--json",
                                   "--lora-rank", "4", "--weights", "bf16"});
  ASSERT_EQ(narrow.status, 0) << narrow.err;
  EXPECT_LT(narrow.json()[0]["peak_bytes"], result.json()[0]["peak_bytes"]);
  EXPECT_EQ(narrow.json()[0]["bytes_copied_per_step"], 0);
}

TEST(Weights, what_does_not_go_together_is_refused) {
  const auto refuses = [](std::vector<std::string> words, const std::string& message) {
    words.insert(words.begin(), {"train", "digits", "--steps", "1", "--weights", "bf16"});
    const auto result = run_command(words);
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.err, HasSubstr(message));
  };
  refuses({}, "--weights bf16 needs --precision bf16, whose ops read such weights as they are");
  refuses({"--precision", "f16"}, "--weights bf16 needs --precision bf16");
  refuses({"--precision", "bf16", "--optimizer", "lamb"},
          "--weights: lamb keeps them in f32; sgd, adam, adamw, rmsprop, adagrad and lion have the choice");
}

}  // namespace
}  // namespace samebytes::testing
