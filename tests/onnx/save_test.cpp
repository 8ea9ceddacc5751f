// Models written by save(): read again they give the module's own values; names and order of axes are PyTorch's.
// SAMEBYTES_ONNX_PYTHON names a Python that has onnx and onnxruntime; with it the checker and the other runtime are
// asked, too. Over 400 lines because all cases share how a model is written, read again and given to that runtime.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "onnx/maker.h"
#include "samebytes/autograd.h"
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

std::map<std::string, std::vector<std::int64_t>> sizes_of_weights(const ::onnx::ModelProto& file) {
  std::map<std::string, std::vector<std::int64_t>> sizes;
  for (const auto& tensor : file.graph().initializer())
    sizes[tensor.name()] = {tensor.dims().begin(), tensor.dims().end()};
  return sizes;
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
x = x.astype({"tensor(float)": numpy.float32, "tensor(int32)": numpy.int32,
              "tensor(int64)": numpy.int64}[given.type])
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
  const auto sizes = sizes_of_weights(file);
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

TEST(OnnxSave, a_quantized_network_is_one_of_8_bit_numbers) {
  const Engine engine;
  const NoGrad no_grad;
  nn::Sequential net(nn::Conv2d({.in = 3, .out = 8, .kernel = 3, .pad = 1}), nn::BatchNorm2d({.features = 8}),
                     nn::Relu(), nn::Conv2d({.in = 8, .out = 6, .kernel = 3, .stride = 2, .pad = 1}), nn::Relu(),
                     nn::Flatten(), nn::Linear({.in = 96, .out = 5}));
  const Array x = uniform({2, 8, 8, 3}, -1, 1).eval();
  nn::quantize(net);
  const TemporaryFolder folder;
  std::string message;
  try {
    save(folder / "dynamic.onnx", net, x);
  } catch (const ArgumentError& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("quantize() with a calibration"), std::string::npos) << message;
  nn::dequantize(net);
  nn::quantize(net, {x});
  const auto file = round_trip(net, x, "quantized");
  EXPECT_EQ(count_of(file, "QuantizeLinear"), 3);
  EXPECT_EQ(count_of(file, "DequantizeLinear"), 6);
  std::size_t bytes = 0;  // of weights in 8 bits
  for (const auto& node : file.graph().node())
    if (node.op_type() == "Constant" && node.attribute(0).t().data_type() == 3)
      bytes += node.attribute(0).t().raw_data().size();
  EXPECT_EQ(bytes, 3U * 3 * 3 * 8 + 3 * 3 * 8 * 6 + 96 * 5);
}

TEST(OnnxSave, a_gpt_keeps_its_numbers) {
  const Engine engine;
  models::Gpt net = models::gpt({.vocabulary = 40, .context = 12, .layers = 2, .heads = 2, .width = 16});
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < 24; ++i) ids.push_back(i * 7 % 40);
  const auto file = round_trip(net, array(ids, {2, 12}), "gpt");
  EXPECT_EQ(file.graph().input(0).type().tensor_type().elem_type(), 6) << "ids stay integers";
  const auto wide = round_trip(net, astype(array(ids, {2, 12}), i64), "gpt of i64");
  EXPECT_EQ(wide.graph().input(0).type().tensor_type().elem_type(), 7) << "and those of 64 bits have 64";
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
            hard_swish(mish(elu(in[0] - 0.5, 0.7))),
            tril(in[0], 1) + triu(in[0]),
            reshape(grid_sample(reshape(in[0], {1, 2, 3, 4}), reshape(in[1], {1, 2, 1, 2}) - 1.0), {2, 4})};
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

TEST(OnnxSave, scatters_and_resampled_axes) {
  const Engine engine;
  const TemporaryFolder folder;
  const Array x = uniform({3, 4, 5}, -1, 1);
  const Array index = array(std::vector<std::int32_t>{2, 0, 3, 1, 3, 0}, {3, 2, 1});
  const Array many = broadcast_to(index, Shape{3, 2, 5}), places = array(std::vector<std::int32_t>{1, 3, -1, 1}, {4});
  const std::pair<const char*, std::function<Array(const Array&)>> functions[] = {
      {"scatter", [&](const Array& a) { return scatter(a, 1, many, slice(a, 1, 0, 2) * 2.0); }},
      {"part", [&](const Array& a) { return scatter(a, 1, slice(many, 2, 0, 3), slice(slice(a, 1, 0, 2), 2, 1, 4)); }},
      {"product",
       [&](const Array& a) { return scatter_reduce(a, 1, many, slice(a, 1, 1, 3), {.reduce = ScatterReduce::prod}); }},
      {"largest",
       [&](const Array& a) { return scatter_reduce(a, 1, many, slice(a, 1, 1, 3), {.reduce = ScatterReduce::amax}); }},
      {"least",
       [&](const Array& a) {
         return scatter_reduce(a, 1, many, slice(a, 1, 1, 3), {.reduce = ScatterReduce::amin, .include_self = false});
       }},
      {"sum", [&](const Array& a) { return scatter_add(a, 1, many, slice(a, 1, 1, 3)); }},
      {"line",
       [&](const Array& a) {
         const Array line = reshape(slice(a, 0, 0, 1), {-1});
         return scatter_add(line, 0, places, slice(line, 0, 4, 8));
       }},
      {"resized", [&](const Array& a) { return interpolate(a, {.size = {7}, .mode = InterpolateMode::cubic}); }}};
  for (const auto& each : functions) {
    const char* const name = each.first;
    const std::function<Array(const Array&)>& function = each.second;
    const std::string path = folder / "model.onnx";
    save(path, [&](std::span<const Array> in) -> std::vector<Array> { return {function(in[0])}; }, {&x, 1});
    const Array want = function(x);
    expect_other_runtime_agrees(folder, path, x, want);
    const Array again = std::get<Array>(load(path).run({{"input", x}}).at("output"));
    ASSERT_EQ(again.shape(), want.shape()) << name;
    expect_close(again, want, name);
  }
}

TEST(OnnxSave, pools_keep_their_padding_at_both_ends) {
  const Engine engine;
  const TemporaryFolder folder;
  const Array x = uniform({2, 7, 8, 3}, -1, 1);
  const Pool2dOptions windows[] = {
      {.kernel_h = 3, .kernel_w = 3, .stride_h = 1, .stride_w = 1, .pad_h = 1, .pad_w = 1},
      {.kernel_h = 3, .kernel_w = 2, .stride_h = 2, .stride_w = 1, .pad_h = 1, .pad_w = 1, .ceil_mode = true},
      {.kernel_h = 3, .kernel_w = 5, .stride_h = 2, .stride_w = 3, .pad_w = 2, .count_include_pad = false},
      {.kernel_h = 3,
       .kernel_w = 3,
       .stride_h = 2,
       .stride_w = 2,
       .count_include_pad = false,
       .pad_end_h = 1,
       .pad_end_w = 2},
      {.kernel_h = 2,
       .kernel_w = 3,
       .stride_h = 1,
       .stride_w = 1,
       .pad_w = 1,
       .count_include_pad = false,
       .pad_end_h = 1,
       .pad_end_w = 0}};
  for (const Pool2dOptions& window : windows) {
    for (const auto& pool : {max_pool2d, avg_pool2d}) {
      const std::string path = folder / "model.onnx";
      save(path, [&](std::span<const Array> in) -> std::vector<Array> { return {pool(in[0], window)}; }, {&x, 1});
      const Array want = pool(x, window);
      expect_other_runtime_agrees(folder, path, channels_first(x), channels_first(want));
      const Array again = std::get<Array>(load(path).run({{"input", channels_first(x)}}).at("output"));
      ASSERT_EQ(channels_last(again).shape(), want.shape());
      expect_close(channels_last(again), want, "window of " + std::to_string(window.kernel_h));
    }
  }
}

TEST(OnnxSave, recurrent_layers_are_operators_of_their_own_with_the_weights_of_pytorch) {
  const Engine engine;
  const Array x = uniform({3, 5, 4}, -1, 1);
  nn::Sequential two(nn::Lstm({.in = 4, .hidden = 6, .layers = 2, .bidirectional = true}),
                     nn::Linear({.in = 12, .out = 3}));
  const auto file = round_trip(two, x, "lstm");
  EXPECT_EQ(count_of(file, "LSTM"), 4) << "one for each layer and direction";
  const auto sizes = sizes_of_weights(file);
  EXPECT_EQ(sizes.at("0.weight_ih_l0"), (std::vector<std::int64_t>{24, 4}));
  EXPECT_EQ(sizes.at("0.weight_hh_l1_reverse"), (std::vector<std::int64_t>{24, 6}));
  EXPECT_EQ(sizes.at("0.bias_hh_l0"), (std::vector<std::int64_t>{24}));
  for (const bool has_bias : {true, false}) {
    nn::Gru one({.in = 4, .hidden = 7, .bias = has_bias, .bidirectional = true});
    EXPECT_EQ(count_of(round_trip(one, x, "gru"), "GRU"), 2);
  }
}

TEST(OnnxSave, a_recurrent_layer_keeps_its_states_and_lengths) {
  const Engine engine;
  const TemporaryFolder folder;
  const auto small = [](const Shape& shape) { return uniform(shape, -0.5, 0.5); };
  const Array x = small({3, 5, 4}), h0 = small({3, 6}), c0 = small({3, 6});
  const Array lengths = array(std::vector<std::int32_t>{5, 2, 4}, {3});
  const RecurrentWeights of_lstm{small({24, 4}), small({24, 6}), small({24}), small({24})},
      of_gru{small({18, 4}), small({18, 6}), {}, small({18})};
  for (const bool reverse : {false, true}) {
    const Traced function = [&](std::span<const Array> in) -> std::vector<Array> {
      const RecurrentOptions options{.h0 = in[1], .c0 = in[2], .lengths = in[3], .reverse = reverse};
      const LstmResult a = lstm(in[0], of_lstm, options);
      const GruResult b = gru(in[0], of_gru, {.h0 = in[1], .lengths = in[3], .reverse = reverse});
      return {a.y, a.h_n, a.c_n, b.y, b.h_n};
    };
    const Array inputs[] = {x, h0, c0, lengths};
    save(folder / "f.onnx", function, inputs);
    const auto made =
        load(folder / "f.onnx").run({{"input_0", x}, {"input_1", h0}, {"input_2", c0}, {"input_3", lengths}});
    const auto want = function(inputs);
    for (std::size_t i = 0; i < want.size(); ++i)
      expect_close(std::get<Array>(made.at("output_" + std::to_string(i))), want[i], std::to_string(i));
  }
}

TEST(OnnxSave, rotary_positions_and_orders_are_written) {
  const Engine engine;
  const TemporaryFolder folder;
  const Array x = uniform({2, 5, 3, 6}, -1, 1);
  const Traced function = [](std::span<const Array> in) -> std::vector<Array> {
    const auto best = top_k(in[0], 2, -1, false);
    return {rotary(in[0]),
            rotary(in[0], {.interleaved = true, .base = 500.0, .offset = 3}),
            rotary(in[0], {.offset = 1, .heads = 2}),
            best.values,
            astype(best.indices, f32),
            astype(argsort(in[0], 1, true), f32),
            sort(in[0], 2).values};
  };
  save(folder / "f.onnx", function, {&x, 1}, {}, {{}, {}, false});
  const auto made = load(folder / "f.onnx").run({{"input", x}});
  const auto want = function({&x, 1});
  ASSERT_EQ(made.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i)
    expect_close(std::get<Array>(made.at("output_" + std::to_string(i))), want[i], std::to_string(i));
  const Traced largest = [](std::span<const Array> in) -> std::vector<Array> {
    return {top_k(rotary(in[0], {.interleaved = true}), 2).values};
  };
  save(folder / "g.onnx", largest, {&x, 1}, {}, {{}, {}, false});
  expect_other_runtime_agrees(folder, folder / "g.onnx", x, largest({&x, 1})[0]);
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

  Maker maker;
  maker.input("x", {"1", "1", "4", "4"});
  auto& pool = maker.node("MaxPool", {"x"}, "largest");
  pool.add_output("places");
  Maker::set(pool, "kernel_shape", std::vector<std::int64_t>{2, 2});
  maker.output("places");
  Model places = load(maker.saved(folder));
  const Traced pooled = [&](std::span<const Array> in) -> std::vector<Array> {
    const auto outputs = places.run({{"x", in[0]}});
    return {std::get<Tensor>(outputs.at("places")).sizes.empty() ? in[0] : zeros({1})};
  };
  EXPECT_NE(message_of([&] {
              save(path, pooled, std::vector<Array>{zeros({1, 1, 4, 4})});
            }).find("an input of the trace"),
            std::string::npos)
      << "where a pool found its largest values";
}

// What language models compute with ids: places that count what is no padding, the place of the largest id, choices,
// sums. The saved file gives for other ids what the first file gives.
TEST(OnnxSave, arithmetic_of_ids_is_written_as_it_is_computed) {
  const Engine engine;
  const TemporaryFolder folder;
  Maker maker(17);
  maker.input("ids", {"2", "4"}, 7);
  maker.floats("table", {7, 3}, contiguous(uniform({7, 3})).to_vector<float>());
  for (const auto& [name, values] : std::map<std::string, std::vector<std::int64_t>>{
           {"zero", {0}}, {"one", {1}}, {"three", {3}}, {"rows", {0, 1}}, {"last", {-1}}})
    maker.ints(name, values);
  maker.node("Equal", {"ids", "zero"}, "is_padding");
  maker.node("Not", {"is_padding"}, "is_word");
  Maker::set(maker.node("Cast", {"is_word"}, "words"), "to", std::int64_t{6});
  maker.node("CumSum", {"words", "one"}, "counted");
  maker.node("Mul", {"counted", "words"}, "places");
  Maker::set(maker.node("Cast", {"places"}, "wide"), "to", std::int64_t{7});
  maker.node("Gather", {"table", "wide"}, "embedded");
  auto& largest = maker.node("ArgMax", {"ids"}, "best");
  Maker::set(largest, "axis", std::int64_t{-1});
  Maker::set(largest, "keepdims", std::int64_t{0});
  maker.node("Unsqueeze", {"best", "last"}, "column");
  maker.node("Unsqueeze", {"rows", "last"}, "row");
  Maker::set(maker.node("Concat", {"row", "column"}, "index"), "axis", std::int64_t{1});
  maker.node("GatherND", {"embedded", "index"}, "y");
  maker.node("Greater", {"ids", "three"}, "is_large");
  maker.node("Neg", {"ids"}, "negative");
  maker.node("Where", {"is_large", "negative", "wide"}, "chosen");
  maker.node("Max", {"chosen", "last"}, "bounded");
  maker.node("ReduceSum", {"bounded", "one"}, "total");
  Maker::set(maker.node("Cast", {"total"}, "z"), "to", std::int64_t{1});
  maker.output("y");
  maker.output("z");
  Model model = load(maker.saved(folder));
  const auto ids = [](const std::vector<std::int32_t>& values, Dtype dtype) {
    return astype(array(values, {2, 4}), dtype);
  };
  const Traced traced = [&](std::span<const Array> in) -> std::vector<Array> {
    const auto made = model.run({{"ids", in[0]}});
    return {std::get<Array>(made.at("y")), std::get<Array>(made.at("z"))};
  };
  for (const Dtype dtype : {i32, i64}) {
    const Array first = ids({1, 2, 5, 0, 3, 0, 4, 0}, dtype), other = ids({6, 0, 2, 2, 1, 1, 3, 5}, dtype);
    const std::string path = folder / (std::string(name_of(dtype)) + ".onnx");
    save(path, traced, {&first, 1}, model.state(), {{"ids"}, {"y", "z"}});
    Model again = load(path);
    for (const char* name : {"y", "z"})
      expect_close(std::get<Array>(again.run({{"ids", other}}).at(name)),
                   std::get<Array>(model.run({{"ids", other}}).at(name)), name);
  }
}

TEST(OnnxSave, an_output_may_have_a_name_that_values_inside_would_get) {
  const Engine engine;
  const TemporaryFolder folder;
  const Array x = uniform({2, 4});
  const Traced function = [](std::span<const Array> in) -> std::vector<Array> {
    return {in[0] / sum(in[0], {1}, true), in[0] * 2.0};
  };
  save(folder / "f.onnx", function, {&x, 1}, {}, {{"x"}, {"div_1", "mul_1"}});
  const auto made = load(folder / "f.onnx").run({{"x", x}});
  expect_close(std::get<Array>(made.at("div_1")), function({&x, 1})[0], "div_1");
  expect_close(std::get<Array>(made.at("mul_1")), function({&x, 1})[1], "mul_1");
}

TEST(OnnxSave, what_cannot_be_written_is_named_in_one_message) {
  const Engine engine;
  const TemporaryFolder folder;
  const Array x = uniform({2, 4});
  const Traced function = [](std::span<const Array> in) -> std::vector<Array> {
    return {cumprod(in[0], 1), dropout(in[0], 0.5)};
  };
  try {
    save(folder / "f.onnx", function, {&x, 1});
    FAIL();
  } catch (const ArgumentError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("cumprod"), std::string::npos) << text;
    EXPECT_NE(text.find("dropout"), std::string::npos) << text;
  }
  EXPECT_FALSE(std::ifstream(folder / "f.onnx").good());
}

}  // namespace
}  // namespace samebytes::onnx
