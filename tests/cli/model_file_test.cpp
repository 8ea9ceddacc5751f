// samebytes run, inspect and convert on files that the library wrote; samebytes data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

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

// As PaddlePaddle's exporter writes them.
TEST_F(ModelFile, open_sizes_without_a_name_are_given_by_their_place) {
  const std::string fixed("\x0a\x02\x08\x02\x0a\x02\x08\x04", 8), open("\x0a\x02\x08\x02\x0a\x02\x12\x00", 8);
  std::string bytes = get(model_);
  const auto at = bytes.find(fixed);  // the sizes 2, 4 of x
  ASSERT_NE(at, std::string::npos);
  put(model_, bytes.replace(at, fixed.size(), open));
  const auto refused = run_command({"run", model_, "--random"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("input x has the size ? along axis 1, which is open; say --dim x.1=N"));
  const auto result = run_command({"run", model_, "--random", "--dim", "x.1=4", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.json()["outputs"][0]["shape"], (std::vector<int>{2, 3}));
  EXPECT_EQ(run_command({"inspect", model_, "--dim", "x.1=4"}).status, 0);
  const auto unknown = run_command({"run", model_, "--random", "--dim", "x.1=4,x.2=4"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--dim x.2=4: no input has a size of this name"));
}

TEST_F(ModelFile, run_explains_the_plan_of_all_outputs_and_counts_what_only_changes_a_layout) {
  const Array first = cell(uniform({3, 3, 3, 8}), "first"), second = cell(uniform({3, 3, 8, 8}), "second");
  const onnx::Traced two = [&](std::span<const Array> x) -> std::vector<Array> {
    const Array y = max_pool2d(relu(conv2d(x[0], first)));
    return {mean(y), conv2d(y, second)};
  };
  const std::vector<Array> example{zeros({2, 16, 16, 3})};
  onnx::save(folder_ / "two.onnx", two, example, {});
  const auto result = run_command({"run", folder_ / "two.onnx", "--random", "--explain", "plan"});
  ASSERT_EQ(result.status, 0) << result.err;
  const std::string key = "relayouts: ";
  const auto at = result.out.find(key);
  ASSERT_NE(at, std::string::npos) << result.out;
  EXPECT_LE(std::stoi(result.out.substr(at + key.size())), 3) << result.out;
  int convolutions = 0;  // one plan has both, not one for each output
  for (auto place = result.out.find("conv2d"); place != std::string::npos; place = result.out.find("conv2d", place + 1))
    ++convolutions;
  EXPECT_EQ(convolutions, 2) << result.out;
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
  EXPECT_THAT(run_command({"inspect", folder_ / "none"}).err, HasSubstr("No such file"));
  ASSERT_EQ(mkfifo((folder_ / "pipe.onnx").c_str(), 0600), 0);
  EXPECT_THAT(run_command({"inspect", folder_ / "pipe.onnx"}).err, HasSubstr("is no regular file"));
  put(folder_ / "a.gguf", "GGUF, and more");
  EXPECT_THAT(run_command({"inspect", folder_ / "a.gguf"}).err, HasSubstr("gguf: "));
  put(folder_ / "a.txt", "anything at all");
  EXPECT_THAT(run_command({"inspect", folder_ / "a.txt"}).err, HasSubstr("is neither an ONNX model"));
}

TEST_F(ModelFile, names_that_are_no_utf8_do_not_hide_what_was_found) {
  const std::string tensors = folder_ / "a\xff.safetensors";
  io::save(tensors, net_);
  const auto table = run_command({"inspect", tensors, "--json"});
  ASSERT_EQ(table.status, 0) << table.err;
  EXPECT_THAT(table.json()["file"].get<std::string>(), HasSubstr("a\ufffd.safetensors"));
  const std::string model = folder_ / "b\xff.onnx";
  std::filesystem::rename(model_, model);
  const auto result = run_command({"run", model, "--random", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.json()["model"].get<std::string>(), HasSubstr("b\ufffd.onnx"));
}

TEST_F(ModelFile, inspect_counts_the_operations_and_the_memory_of_a_pass_without_running_it) {
  const auto one = run_command({"inspect", model_, "--json"}).json()["cost"];
  const auto many = run_command({"inspect", model_, "--batch", "6", "--json"}).json()["cost"];
  EXPECT_EQ(one["samples"], 1);
  EXPECT_GE(one["flops"], 2 * (4 * 8 + 8 * 3));
  EXPECT_GE(many["flops"], 6 * 2 * (4 * 8 + 8 * 3));
  EXPECT_LT(many["flops"], 6.5 * one["flops"].get<double>());
  EXPECT_EQ(one["parameter_bytes"], 4 * 67);
  EXPECT_GT(one["bytes"], one["parameter_bytes"]);
  EXPECT_THAT(run_command({"inspect", model_}).out, HasSubstr("a forward pass of 1 sample: "));
  io::save(folder_ / "net.safetensors", net_);
  const auto refused = run_command({"inspect", folder_ / "net.safetensors", "--batch", "2"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("--batch and --dim are for"));
}

TEST_F(ModelFile, convert_writes_the_weights_of_a_model_and_puts_others_in) {
  const std::string weights = folder_ / "net.safetensors", half = folder_ / "half.safetensors";
  const auto first = run_command({"convert", model_, weights});
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("4 tensors, 67 values"));
  const io::TensorFile file(weights);
  for (const nn::NamedArray& entry : net_.state()) {
    const auto at = file.find(entry.name);
    ASSERT_TRUE(at) << entry.name;
    const HostArray values = file.read(*at);
    EXPECT_EQ((std::vector<float>(values.as<float>().begin(), values.as<float>().end())),
              entry.array.to_vector<float>());
  }
  ASSERT_EQ(run_command({"convert", weights, half, "--dtype", "bf16"}).status, 0);
  EXPECT_EQ(io::TensorFile(half).tensors()[0].dtype, bf16);
  const std::string other = folder_ / "other.onnx";
  ASSERT_EQ(run_command({"convert", half, other, "--graph", model_}).status, 0);
  const NoGrad no_grad;
  const Array x = uniform({2, 4});
  const auto expected = net_(x).to_vector<float>(), got = onnx::load(other).forward(x).to_vector<float>();
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 0.02);
}

TEST_F(ModelFile, convert_refuses_pairs_that_make_no_sense) {
  const std::string weights = folder_ / "net.safetensors";
  io::save(weights, net_);
  const auto refuses = [&](std::vector<std::string> words, const std::string& message) {
    words.insert(words.begin(), "convert");
    const auto result = run_command(words);
    EXPECT_EQ(result.status, 2) << message;
    EXPECT_THAT(result.err, HasSubstr(message));
  };
  refuses({model_, folder_ / "b.onnx"}, "are both ONNX models");
  refuses({model_, folder_ / "b.txt"}, "ends in .safetensors or .onnx, got");
  refuses({weights, folder_ / "b.onnx"}, "say which ONNX model they are of");
  refuses({weights, folder_ / "b.safetensors"}, "is a safetensors file already; say which dtype");
  refuses({weights, folder_ / "b.safetensors", "--part", "model"}, "only a checkpoint has parts");
  refuses({weights, folder_ / "b.onnx", "--graph", model_, "--dtype", "f16"}, "keeps the dtypes of its graph");
  refuses({model_}, "convert needs NEWFILE");
}

TEST(Convert, the_network_of_a_checkpoint_is_what_save_writes) {
  const TemporaryFolder folder;
  const std::string saved = folder / "saved.safetensors", converted = folder / "converted.safetensors";
  const auto trained = run_command({"train", "digits", "--steps", "3", "--checkpoint", folder / "run",
                                    "--checkpoint-every", "3", "--save", saved, "--quiet"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  const auto result = run_command({"convert", (folder / "run") + "/checkpoint-000000003.safetensors", converted});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("of the run's state left out"));
  const io::TensorFile a(saved), b(converted);
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (std::size_t i = 0; i < a.tensors().size(); ++i) {
    const auto other = b.find(a.tensors()[i].name);
    ASSERT_TRUE(other) << a.tensors()[i].name;
    EXPECT_EQ(a.tensors()[i].shape, b.tensors()[*other].shape) << a.tensors()[i].name;
    EXPECT_EQ(a.read(i).bytes, b.read(*other).bytes) << a.tensors()[i].name;
  }
}

TEST(Convert, a_checkpoint_in_the_place_of_weights_says_how_to_get_them) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_command({"train", "digits", "--steps", "1", "--checkpoint", folder / "runs", "--quiet"}).status, 0);
  const std::string checkpoint = folder / "runs/checkpoint-000000001.safetensors";
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"eval", "digits", "--load", checkpoint},
                                             {"train", "digits", "--load", checkpoint},
                                             {"generate", "--load", checkpoint}}) {
    const auto result = run_command(words);
    EXPECT_EQ(result.status, 2) << words[0];
    EXPECT_THAT(result.err, HasSubstr("is a checkpoint of a run; `samebytes convert " + checkpoint)) << words[0];
  }
  EXPECT_THAT(run_command({"inspect", folder / "runs"}).err, HasSubstr("is a folder; expected a file"));
  EXPECT_THAT(run_command({"inspect", folder / "none"}).err, HasSubstr("No such file"));
}

TEST(Data, a_folder_without_the_files_leaves_nothing_behind) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "from/a");
  std::filesystem::create_directory_symlink("..", folder / "from/a/up");  // a loop
  const auto result = run_command({"data", "mnist", "--from", folder / "from", "--to", folder / "new/mnist"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("the file train-images-idx3-ubyte of mnist"));
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
}

TEST(Data, sets_are_listed_and_their_places_named_and_copies_are_checked) {
  EXPECT_THAT(run_command({"data"}).out, HasSubstr("fashion_mnist"));
  const auto places = run_command({"data", "cifar10"});
  EXPECT_EQ(places.status, 0);
  EXPECT_THAT(places.out, HasSubstr("samebytes data cifar10 --from https://"));
  EXPECT_THAT(places.out, HasSubstr("They go to data/cifar10"));
  const auto unknown = run_command({"data", "minst"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("there is no data set minst; there are mnist"));
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "text");
  put(folder / "text/input.txt", "to be, or not to be");
  const auto made = run_command({"data", "tinyshakespeare", "--from", folder / "text", "--to", folder / "data/text"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("samebytes train gpt --data " + (folder / "data/text/input.txt")));
  EXPECT_EQ(get(folder / "data/text/input.txt"), "to be, or not to be");
  EXPECT_EQ(run_command({"data", "mnist", "--from", folder / "text", "--to", folder / "mnist"}).status, 1);
  EXPECT_THAT(run_command({"train", "cnn"}).err, HasSubstr("`samebytes data mnist` says where to get them"));
}

}  // namespace
}  // namespace samebytes::testing
