// Models written by save(): read again they give the module's own values; names and order of axes are PyTorch's.
// SAMEBYTES_ONNX_PYTHON names a Python that has onnx and onnxruntime; with it the checker and the other runtime are
// asked, too.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "onnx/maker.h"
#include "samebytes/engine.h"
#include "samebytes/error.h"
#include "samebytes/models.h"
#include "samebytes/nn.h"
#include "samebytes/onnx.h"
#include "samebytes/ops.h"

#include "support/files.h"

namespace samebytes::onnx {
namespace {

using testing::TemporaryFolder;

::onnx::ModelProto read(const std::string& path) {
  ::onnx::ModelProto model;
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(model.ParseFromIstream(&in));
  return model;
}

int count_of(const ::onnx::ModelProto& model, const std::string& op) {
  int count = 0;
  for (const auto& node : model.graph().node()) count += node.op_type() == op;
  return count;
}

void write_floats(const std::string& path, const std::vector<float>& values) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
}

// The other runtime's values where it is there: rows of the file's own order of axes.
void expect_other_runtime_agrees(const TemporaryFolder& folder, const std::string& path, const Array& input,
                                 const Array& output) {
  const char* python = std::getenv("SAMEBYTES_ONNX_PYTHON");
  if (python == nullptr) return;
  write_floats(folder / "in.bin", contiguous(input).to_vector<float>());
  write_floats(folder / "out.bin", contiguous(output).to_vector<float>());
  std::ofstream(folder / "compare.py") << R"py(
import sys, numpy, onnx, onnxruntime
folder, path = sys.argv[1:]
onnx.checker.check_model(path, full_check=True)
session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
given = session.get_inputs()[0]
x = numpy.fromfile(folder + "/in.bin", numpy.float32).reshape(given.shape)
x = x.astype({"tensor(float)": numpy.float32, "tensor(int32)": numpy.int32}[given.type])
y = session.run(None, {given.name: x})[0].astype(numpy.float32).ravel()
numpy.testing.assert_allclose(numpy.fromfile(folder + "/out.bin", numpy.float32), y, 1e-3, 1e-4)
)py";
  const std::string command = std::string(python) + " '" + (folder / "compare.py") + "' '" + (folder / "") + "' '" +
                              path + "' 2>&1 | tail -5 >'" + (folder / "said") + "'; grep -q Error '" +
                              (folder / "said") + "' && cat '" + (folder / "said") + "' >&2";
  EXPECT_NE(std::system(command.c_str()), 0) << path;
}

Array channels_first(const Array& a) { return a.shape().rank() == 4 ? transpose(a, {0, 3, 1, 2}) : a; }
Array channels_last(const Array& a) { return a.shape().rank() == 4 ? transpose(a, {0, 2, 3, 1}) : a; }

void expect_close(const Array& got, const Array& want, const std::string& what) {
  ASSERT_EQ(got.shape(), want.shape()) << what;
  const auto a = contiguous(got).to_vector<float>(), b = contiguous(want).to_vector<float>();
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4 * (1 + std::abs(b[i]))) << what << " " << i;
}

// Writes, reads again, compares.
::onnx::ModelProto round_trip(nn::Module& module, const Array& x, const std::string& what) {
  const TemporaryFolder folder;
  const std::string path = folder / "model.onnx";
  save(path, module, x);
  module.eval();
  const Array y = module(x);
  Model again = load(path);
  const Array first = channels_first(x);
  const auto outputs = again.run({{"input", first}});
  expect_close(channels_last(std::get<Array>(outputs.at("output"))), y, what);
  expect_other_runtime_agrees(folder, path, first, channels_first(y));
  return read(path);
}

TEST(OnnxSave, a_residual_network_keeps_its_numbers_and_the_names_of_pytorch) {
  const Engine engine;
  models::ResNet net = models::resnet(8);
  const Array x = uniform({2, 16, 16, 3});
  const auto file = round_trip(net, x, "resnet");
  std::map<std::string, std::vector<std::int64_t>> sizes;
  for (const auto& tensor : file.graph().initializer())
    sizes[tensor.name()] = {tensor.dims().begin(), tensor.dims().end()};
  for (const auto& entry : net.state()) {
    ASSERT_TRUE(sizes.contains(entry.name)) << entry.name;
    if (entry.layout != nn::Layout::conv) continue;
    const Shape& here = entry.array.shape();
    EXPECT_EQ(sizes.at(entry.name), (std::vector<std::int64_t>{here[3], here[2], here[0], here[1]})) << entry.name;
  }
  EXPECT_LE(count_of(file, "Transpose"), 3) << "transposes between the layers cancel";
  EXPECT_TRUE(net.is_training() == false);
}

TEST(OnnxSave, layers_of_all_kinds_keep_their_numbers) {
  const Engine engine;
  nn::Sequential vision(nn::Conv2d({.in = 3, .out = 8, .kernel = 3, .pad = 1, .groups = 1}),
                        nn::GroupNorm({.groups = 2, .features = 8}), nn::Gelu(), nn::MaxPool2d({.kernel = 2}),
                        nn::ConvTranspose2d({.in = 8, .out = 4, .kernel = 3, .stride = 2, .pad = 1, .output_pad = 1}),
                        nn::Silu(), nn::AvgPool2d({.kernel = 2}), nn::Flatten(), nn::Linear({.in = 64, .out = 5}));
  round_trip(vision, uniform({2, 8, 8, 3}), "vision");
}

TEST(OnnxSave, a_gpt_keeps_its_numbers) {
  const Engine engine;
  models::Gpt net = models::gpt({.vocabulary = 40, .context = 12, .layers = 2, .heads = 2, .width = 16});
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < 24; ++i) ids.push_back(i * 7 % 40);
  const auto file = round_trip(net, array(ids, {2, 12}), "gpt");
  EXPECT_EQ(file.graph().input(0).type().tensor_type().elem_type(), 6) << "ids stay integers";
}

TEST(OnnxSave, a_function_of_several_inputs_and_results_is_written_with_its_names) {
  const Engine engine;
  const TemporaryFolder folder;
  const Array a = uniform({2, 3, 4}), b = uniform({4}, 0.5, 1.5);
  const Traced function = [](std::span<const Array> in) -> std::vector<Array> {
    const Array s = softmax(in[0] * in[1]), half = slice(s, 2, 3, -5, -2);
    return {concat({half, pad(sum(s, {2}, true), {{0, 0}, {0, 0}, {0, 1}})}, 2),
            pow(clip(in[1], 0.6, 1.4), 1.5) - 2.0,
            where(greater(in[0], full({}, 0.5)), rms_norm(in[0]), layer_norm(in[0])),
            max(in[0], {1}) / 3.0,
            matmul(in[0], transpose(in[0])),
            cumsum(in[0], 1),
            take(in[0], array(std::vector<std::int32_t>{2, 0}, {2}), 1),
            hard_swish(mish(elu(in[0] - 0.5, 0.7)))};
  };
  const Array inputs[] = {a, b};
  save(folder / "f.onnx", function, inputs, {}, {.inputs = {"a", "b"}, .outputs = {}});
  Model again = load(folder / "f.onnx");
  const auto made = again.run({{"a", a}, {"b", b}});
  const auto want = function(inputs);
  ASSERT_EQ(made.size(), want.size());
  EXPECT_EQ(again.parameters().size(), 0u) << "constants are not parameters";
  for (std::size_t i = 0; i < want.size(); ++i)
    expect_close(std::get<Array>(made.at("output_" + std::to_string(i))), want[i], std::to_string(i));
}

TEST(OnnxSave, logic_of_bools_and_pads_are_what_other_runtimes_take) {
  const Engine engine;
  const TemporaryFolder folder;
  const Array x = uniform({2, 6, 6, 3}, -1, 1);
  const Traced function = [](std::span<const Array> in) -> std::vector<Array> {
    const Array inside = logical_or(logical_and(greater(in[0], -0.5), less(in[0], 0.5)), greater(in[0], 0.9));
    const Array padded = pad(relu(in[0]), {{0, 0}, {1, 2}, {0, 1}, {0, 0}}) * 2.0;
    return {max_pool2d(padded, {.kernel_h = 2, .kernel_w = 2}) + 0.0, where(inside, in[0], full(Shape{}, 7.0))};
  };
  const std::string path = folder / "model.onnx";
  for (std::size_t k = 0; k < 2; ++k) {
    const Traced one = [&](std::span<const Array> in) -> std::vector<Array> { return {function(in)[k]}; };
    save(path, one, {&x, 1});
    const auto file = read(path);
    EXPECT_EQ(count_of(file, "Min") + count_of(file, "Max"), 0);
    for (const auto& node : file.graph().node()) EXPECT_TRUE(node.op_type() != "Pad" || node.input_size() == 3);
    expect_other_runtime_agrees(folder, path, channels_first(x), channels_first(one({&x, 1})[0]));
    const Array again = std::get<Array>(load(path).run({{"input", channels_first(x)}}).at("output"));
    expect_close(channels_last(again), one({&x, 1})[0], "output " + std::to_string(k));
  }
}

// A model whose graph computes with integers: comparisons and casts stay on the device and are written, other
// arithmetic is the host's and is refused.
TEST(OnnxSave, integers_of_an_input_are_never_written_as_constants) {
  const Engine engine;
  const TemporaryFolder folder;
  const auto masked = [&](const std::string& arithmetic) {
    Maker maker;
    maker.input("mask", {"3"}, 7);
    maker.input("x", {"3"});
    maker.node(arithmetic, {"mask", "mask"}, "made");
    auto& attribute = *maker.node("Cast", {"made"}, "share").add_attribute();
    attribute.set_name("to");
    attribute.set_type(::onnx::AttributeProto::INT);
    attribute.set_i(1);
    maker.node("Mul", {"x", "share"}, "y");
    maker.output("y");
    return load(maker.saved(folder));
  };
  const std::vector<Array> examples{array(std::vector<std::int32_t>{0, 1, 2}, {3}), array({1, 2, 3})};
  const auto traced = [&](Model& model) -> Traced {
    return [&model](std::span<const Array> in) -> std::vector<Array> {
      return {std::get<Array>(model.run({{"mask", in[0]}, {"x", in[1]}}).at("y"))};
    };
  };
  const SaveOptions options{{"mask", "x"}, {"y"}};
  const std::string path = folder / "saved.onnx";
  Model rest = masked("Mod");
  EXPECT_NE(message_of([&] { save(path, traced(rest), examples, {}, options); }).find("an input of the trace"),
            std::string::npos);
  Model square = masked("Mul");
  save(path, traced(square), examples, {}, options);
  const auto file = read(path);
  EXPECT_EQ(count_of(file, "Mul"), 2);
}

TEST(OnnxSave, what_cannot_be_written_is_named_in_one_message) {
  const Engine engine;
  const TemporaryFolder folder;
  const Array x = uniform({2, 4});
  const Traced function = [](std::span<const Array> in) -> std::vector<Array> {
    return {argsort(in[0]), dropout(in[0], 0.5)};
  };
  try {
    save(folder / "f.onnx", function, {&x, 1});
    FAIL();
  } catch (const ArgumentError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("argsort"), std::string::npos) << text;
    EXPECT_NE(text.find("dropout"), std::string::npos) << text;
  }
  EXPECT_FALSE(std::ifstream(folder / "f.onnx").good());
}

}  // namespace
}  // namespace samebytes::onnx
