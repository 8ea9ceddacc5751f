// samebytes run and samebytes inspect on files that the library wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command.h"
#include "samebytes/samebytes.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

class ModelFile : public ::testing::Test {
 protected:
  ModelFile() : net_(nn::Linear({.in = 4, .out = 8}), nn::Relu(), nn::Linear({.in = 8, .out = 3})) {
    net_.eval();
    onnx::save(model_, net_, zeros({2, 4}), {.inputs = {"x"}, .outputs = {"y"}});
  }

  Engine engine_;
  EngineScope scope_{engine_};
  nn::Sequential net_;
  const TemporaryFolder folder_;
  const std::string model_ = folder_ / "net.onnx";
};

TEST_F(ModelFile, runs_on_arrays_of_numpy_and_gives_what_the_module_gives) {
  const std::vector<float> x{1, -2, 3, 0.5f, -1, 0.25f, 2, -3};
  data::write_npy(folder_ / "x.npy", HostArray({2, 4}, x));
  const auto result =
      run_command({"run", model_, "--input", "x=" + (folder_ / "x.npy"), "--output", folder_ / "out", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.json()["outputs"][0]["shape"], (std::vector<int>{2, 3}));
  const HostArray y = data::read_npy(folder_ / "out/y.npy");
  const NoGrad no_grad;
  const std::vector<float> expected = net_(array(x, {2, 4})).to_vector<float>();
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(y.as<float>()[i], expected[i], 1e-5);
}

TEST_F(ModelFile, wrong_inputs_are_named) {
  const auto refuses = [&](std::vector<std::string> words, const std::string& message) {
    words.insert(words.begin(), {"run", model_});
    const auto result = run_command(words);
    EXPECT_NE(result.status, 0) << message;
    EXPECT_EQ(result.out, "") << message;
    EXPECT_THAT(result.err, HasSubstr(message));
  };
  refuses({},
          "input x is missing: float [2, 4]; give --input x=FILE.npy, or "
          "--random");
  refuses({"--input", "z=a.npy"}, "--input z: the model has the inputs x");
  refuses({"--input", "x"}, "--input x: expected NAME=FILE.npy");
  refuses({"--input", "x=" + (folder_ / "none.npy")}, "none.npy");
  data::write_npy(folder_ / "wide.npy", HostArray({2, 5}, std::vector<float>(10)));
  refuses({"--input", "x=" + (folder_ / "wide.npy")}, "input 'x': axis 1 has size 5, expected 4");
}

TEST_F(ModelFile, inspect_shows_models_and_tensors_and_refuses_what_is_neither) {
  const auto model = run_command({"inspect", model_, "--json"});
  ASSERT_EQ(model.status, 0) << model.err;
  EXPECT_EQ(model.json()["values"], 4 * 8 + 8 + 8 * 3 + 3);
  EXPECT_EQ(model.json()["inputs"][0]["name"], "x");
  EXPECT_THAT(run_command({"inspect", model_}).out, HasSubstr("0.weight"));
  const std::string tensors = folder_ / "net.safetensors";
  io::save(tensors, net_);
  const auto table = run_command({"inspect", tensors});
  EXPECT_THAT(table.out, HasSubstr("4 tensors, 67 values"));
  EXPECT_THAT(run_command({"inspect", folder_ / "none"}).err, HasSubstr("there is no such file"));
  put(folder_ / "a.gguf", "GGUF, and more");
  EXPECT_THAT(run_command({"inspect", folder_ / "a.gguf"}).err, HasSubstr("is a GGUF file, which is not supported"));
  put(folder_ / "a.txt", "anything at all");
  EXPECT_THAT(run_command({"inspect", folder_ / "a.txt"}).err, HasSubstr("is neither an ONNX model"));
}

}  // namespace
}  // namespace samebytes::testing
