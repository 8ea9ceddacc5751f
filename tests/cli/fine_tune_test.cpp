// samebytes train, eval and bench on a model's file: a classifier for four classes that learns the ten of a folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "cli/command.h"
#include "samebytes/samebytes.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FineTune : public ::testing::Test {
 protected:
  FineTune() {
    nn::Sequential net(nn::Conv2d({.in = 3, .out = 8, .kernel = 3, .stride = 2, .pad = 1}), nn::Relu(),
                       nn::MaxPool2d({.kernel = 2}), nn::Flatten(), nn::Linear({.in = 8 * 16, .out = 4}));
    onnx::save(model_, net, zeros({1, 16, 16, 3}), {.inputs = {"pixels"}, .outputs = {"logits"}});
    std::filesystem::create_directories(data_);
    put(data_ + "/train.bin", records(320));
    put(data_ + "/test.bin", records(80));
  }

  // CIFAR's records, in which the class shows: one bright band of ten, with a little noise.
  static std::string records(int count) {
    std::string bytes;
    for (int i = 0; i < count; ++i) {
      const int label = i % 10;
      bytes += static_cast<char>(label);
      for (int pixel = 0; pixel < 3 * 1024; ++pixel) {
        const int row = pixel % 1024 / 32;
        const bool is_bright = row >= 3 * label && row < 3 * label + 5;
        bytes += static_cast<char>((is_bright ? 200 : 40) + (pixel * 7 + i * 13) % 23);
      }
    }
    return bytes;
  }
  CommandResult run(std::vector<std::string> words) { return run_command(std::move(words)); }
  std::string text_of(std::vector<std::string> words, int status) {
    const CommandResult result = run(std::move(words));
    EXPECT_EQ(result.status, status) << result.out << result.err;
    return result.out + result.err;
  }

  Engine engine_;
  EngineScope scope_{engine_};
  const TemporaryFolder folder_;
  const std::string model_ = folder_ / "small.onnx", data_ = folder_ / "cifar";
};

TEST_F(FineTune, the_head_is_replaced_and_what_is_saved_tests_the_same) {
  const std::string tuned = folder_ / "tuned.onnx", weights = folder_ / "tuned.safetensors";
  const auto trained = run({"train", model_, "--data", data_, "--epochs", "8", "--rate", "1e-2", "--batch", "20",
                            "--save", tuned, "--json"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr("the last linear layer, for 4 classes, gives way to a new one for 10 classes"));
  EXPECT_THAT(trained.err, HasSubstr("ImageNet's means"));
  const double accuracy = trained.json()["test_accuracy"];
  EXPECT_GT(accuracy, 0.9);
  EXPECT_EQ(trained.json()["workload"], "small");

  const auto tested = run({"eval", tuned, "--data", data_, "--json"});
  ASSERT_EQ(tested.status, 0) << tested.err;
  EXPECT_NEAR(tested.json()["test_accuracy"], accuracy, 1e-9);
  EXPECT_NEAR(tested.json()["test_loss"], trained.json()["test_loss"], 1e-5);
  EXPECT_EQ(onnx::read_summary(tuned).outputs[0].sizes[1], "10");

  EXPECT_EQ(run({"convert", tuned, weights}).status, 0);
  const auto loaded = run({"eval", model_, "--load", weights, "--data", data_, "--json"});
  ASSERT_EQ(loaded.status, 0) << loaded.err;
  EXPECT_NEAR(loaded.json()["test_accuracy"], accuracy, 1e-9);
}

TEST_F(FineTune, frozen_parameters_keep_their_bytes) {
  const std::string tuned = folder_ / "tuned.onnx";
  const std::string said = text_of({"train", model_, "--data", data_, "--steps", "3", "--freeze", "0.*", "--mean",
                                    "0.5", "--std", "0.25,0.25,0.25", "--save", tuned, "--precision", "bf16"},
                                   0);
  EXPECT_THAT(said, HasSubstr("224 parameters are frozen"));
  EXPECT_THAT(said, Not(HasSubstr("ImageNet")));
  onnx::Model before = onnx::load(model_), after = onnx::load(tuned);
  const auto old = before.state(), now = after.state();
  ASSERT_EQ(old.size(), 4u);
  for (std::size_t i = 0; i < old.size(); ++i) {
    ASSERT_EQ(old[i].name, now[i].name);
    if (old[i].name.starts_with("0."))
      EXPECT_EQ(old[i].array.to_vector<float>(), now[i].array.to_vector<float>()) << old[i].name;
    else
      EXPECT_NE(old[i].array.shape(), now[i].array.shape());
  }
}

TEST_F(FineTune, a_run_that_was_stopped_goes_on_with_the_same_bytes) {
  const auto words = [&](const std::string& name, const std::string& epochs) {
    return std::vector<std::string>{
        "train",   model_, "--data",       data_,          "--epochs", epochs, "--schedule", "constant",
        "--batch", "32",   "--checkpoint", folder_ / name, "--resume", "auto", "--save",     (folder_ / name) + ".onnx",
        "--quiet"};
  };
  text_of(words("whole", "2"), 0);
  text_of(words("parts", "1"), 0);
  text_of(words("parts", "2"), 0);
  EXPECT_EQ(get(folder_ / "whole.onnx"), get(folder_ / "parts.onnx"));
}

TEST_F(FineTune, what_does_not_go_is_said_before_anything_is_trained) {
  const auto refused = [&](std::vector<std::string> words) { return text_of(std::move(words), 2); };
  EXPECT_THAT(refused({"train", model_}), HasSubstr("reads its data from a folder with a folder for each class"));
  EXPECT_THAT(
      refused({"train", model_, "--data", data_, "--freeze", "layer9.*"}),
      HasSubstr("--freeze layer9.*: no parameter has such a name; the first ones are 4.weight, 4.bias, 0.weight"));
  EXPECT_THAT(refused({"train", model_, "--data", data_, "--freeze", "*"}), HasSubstr("leaves no parameter to train"));
  EXPECT_THAT(refused({"eval", model_, "--data", data_}), HasSubstr("gives 4 classes and the data has 10"));
  EXPECT_THAT(refused({"train", model_, "--data", data_, "--mean", "0.1,0.2", "--std", "1"}),
              HasSubstr("--mean: expected one number, or 3"));
  EXPECT_THAT(refused({"train", model_, "--data", data_, "--size", "nano"}), HasSubstr("has no --size"));
  EXPECT_THAT(refused({"train", "digits", "--save", folder_ / "digits.onnx"}), HasSubstr("ends in .safetensors"));
  EXPECT_THAT(refused({"train", "digits", "--mean", "1", "--std", "1"}), HasSubstr("digits has no --mean"));
  EXPECT_THAT(text_of({"train", folder_ / "none.onnx", "--data", data_}, 1), HasSubstr("cannot open the file"));
}

TEST_F(FineTune, bench_measures_a_file_beside_a_workload) {
  const auto result = run({"bench", "digits", model_, "--steps", "3", "--batch", "4", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto rows = result.json();
  ASSERT_EQ(rows.size(), 4u);
  for (std::size_t i = 2; i < 4; ++i) {
    EXPECT_EQ(rows[i]["workload"], "small");
    EXPECT_EQ(rows[i]["batch"], 4);
    EXPECT_GT(rows[i]["gflops"], 0.0);
    EXPECT_EQ(rows[i]["parameters"], 8 * 27 + 8 + 4 * 128 + 4);
    if (rows[i]["memory_mode"] == "fine") {
      EXPECT_EQ(rows[i]["bytes_copied_per_step"], 0);
    }
  }
  EXPECT_TRUE(rows[2]["train_loss"].is_number());
}

TEST_F(FineTune, a_model_of_integers_is_measured_and_dims_are_checked) {
  nn::Embedding table({.in = 7, .out = 6});
  const std::string path = folder_ / "open.onnx";
  onnx::save(path, table, zeros({2, 5}, i32), {.inputs = {"ids"}, .outputs = {"rows"}});
  const auto result = run({"bench", path, "--mode", "infer", "--steps", "2", "--batch", "3", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.json()[0]["samples"], 6);
  EXPECT_THAT(text_of({"bench", path, "--dim", "length"}, 2), HasSubstr("--dim length: expected SYMBOL=N"));
  EXPECT_THAT(text_of({"bench", "digits", "--dim", "length=3"}, 2), HasSubstr("digits has no --dim"));
  EXPECT_THAT(text_of({"bench", path, "--mode", "infer", "--unfrozen"}, 2),
              HasSubstr("--unfrozen: a model's file always repeats its graph"));
}

}  // namespace
}  // namespace samebytes::testing
