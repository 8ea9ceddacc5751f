// Files of 8-bit numbers, in pairs of QuantizeLinear and DequantizeLinear around their operators: pairs round on the
// device, products and convolutions multiply integers, and where they cannot the numbers are the same.
// Over 400 lines because all cases are made by one maker of such files.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <random>

#include "onnx/call.h"
#include "onnx/maker.h"
#include "onnx/settled.h"
#include "samebytes/autograd.h"
#include "samebytes/engine.h"
#include "samebytes/explain.h"
#include "samebytes/onnx.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int>;
using Sizes = std::vector<std::int64_t>;

constexpr int kU8 = 2, kI8 = 3, kU16 = 4, kI16 = 5, kI32 = 6;

Ints whole_numbers(std::size_t n, int low, int high, unsigned seed) {
  std::mt19937 generator(seed);
  Ints values(n);
  for (int& value : values) value = low + static_cast<int>(generator() % static_cast<unsigned>(high - low + 1));
  return values;
}
Floats numbers(std::size_t n, float low, float high, unsigned seed) {
  std::mt19937 generator(seed);
  Floats values(n);
  for (float& value : values) value = low + (high - low) * static_cast<float>(generator() % 100003) / 100003.0F;
  return values;
}

// The scale and zero point of a value.
struct Grid {
  float scale = 1;
  int zero = 0;
  int type = kU8;

  int lowest() const { return (type == kI8 ? -128 : 0) - zero; }
  int highest() const { return lowest() + 255; }
  // round(x / scale) in the range, and the zero point taken off; x must not lie near the middle of two.
  int of(double x) const {
    const double at = x / static_cast<double>(scale);
    EXPECT_GT(std::fabs(at - std::floor(at) - 0.5), 1e-5) << "f32 may round it otherwise";
    return static_cast<int>(std::clamp(std::nearbyint(at), double(lowest()), double(highest())));
  }
};

// A file under construction. `is_split` puts a node between what would be pairs, so that nothing is recognised.
struct Qdq {
  Maker maker{21};
  bool is_split = false;

  void whole(const std::string& name, const Sizes& sizes, const Ints& values, int type) {
    auto& tensor = *maker.model.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    for (const auto size : sizes) tensor.add_dims(size);
    for (const int value : values) tensor.add_int32_data(value);
  }
  void pair(const std::string& in, const std::string& out, const Grid& grid) {
    maker.floats(out + ".scale", {}, {grid.scale});
    whole(out + ".zero", {}, {grid.zero}, grid.type);
    maker.node("QuantizeLinear", {in, out + ".scale", out + ".zero"}, out + ".q");
    if (is_split) maker.node("Identity", {out + ".q"}, out + ".same");
    maker.node("DequantizeLinear", {out + (is_split ? ".same" : ".q"), out + ".scale", out + ".zero"}, out);
  }
  // One scale for all, or those of an axis.
  void weight(const std::string& name, const Sizes& sizes, const Ints& values, const Floats& scales, int axis,
              int type = kI8, int zero = 0) {
    const Sizes of_scale = scales.size() == 1 ? Sizes{} : Sizes{std::ssize(scales)};
    whole(name + ".q", sizes, values, type);
    maker.floats(name + ".scale", of_scale, scales);
    whole(name + ".zero", of_scale, Ints(scales.size(), zero), type);
    Maker::set(maker.node("DequantizeLinear", {name + ".q", name + ".scale", name + ".zero"}, name), "axis",
               std::int64_t{axis});
  }
};

struct Ran {
  Floats y;
  std::string plan;
  bool has_int8() const { return plan.find("int8_product") != std::string::npos; }
};
enum class Mode { inference, gradients, training };

class OnnxQdq : public ::testing::Test {
 protected:
  Ran run(const Qdq& file, const Floats& x, const Shape& shape, Mode mode = Mode::inference) {
    Engine engine;
    Model model = load(file.maker.saved(folder));
    if (mode == Mode::training) model.train();
    std::optional<NoGrad> no_grad;
    if (mode == Mode::inference) no_grad.emplace();
    Ran ran;
    for (int i = 0; i < 2; ++i) ran.y = contiguous(model.forward(array(x, shape))).to_vector<float>();
    ran.plan = explain(engine);
    return ran;
  }
  static void expect_close(const Floats& got, const std::vector<double>& want, const std::string& what) {
    ASSERT_EQ(got.size(), want.size()) << what;
    double most = 0;
    for (const double value : want) most = std::max(most, std::fabs(value));
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(static_cast<double>(got[i]), want[i], 4e-6 * most) << what << ", " << i;
  }
  // The file gives what it gives without anything recognised, and has integers or not.
  void expect_same(const std::function<void(Qdq&)>& fill, const Floats& x, const Shape& shape, bool has_int8,
                   const std::string& what) {
    Qdq file, split{.is_split = true};
    fill(file);
    fill(split);
    const Ran want = run(split, x, shape);
    EXPECT_FALSE(want.has_int8()) << what;
    for (const Mode mode : {Mode::inference, Mode::gradients, Mode::training}) {
      const Ran ran = run(file, x, shape, mode);
      EXPECT_EQ(ran.has_int8(), has_int8 && mode == Mode::inference) << what << "\n" << ran.plan;
      expect_close(ran.y, {want.y.begin(), want.y.end()}, what);
    }
  }

  TemporaryFolder folder;
};

// A Conv of 3 to 5 channels with a border, a Relu, a MatMul over the last axis.
struct Net {
  static constexpr int kIn = 3, kOut = 5, kSize = 6, kColumns = 7;
  Grid of_x, of_y;
  Floats conv_scales, product_scales;
  Ints conv = whole_numbers(kOut * kIn * 9, -127, 127, 1), bias = whole_numbers(kOut, -3000, 3000, 2),
       product = whole_numbers(kSize * kColumns, -127, 127, 3);

  static float of(const Floats& scales, int i) { return scales[scales.size() == 1 ? 0 : static_cast<std::size_t>(i)]; }
  void fill(Qdq& file) const {
    file.maker.input("x", {"n", "3", "6", "6"});
    file.pair("x", "xd", of_x);
    file.weight("w", {kOut, kIn, 3, 3}, conv, conv_scales, 0);
    Floats bias_scales;
    for (const float scale : conv_scales) bias_scales.push_back(scale * of_x.scale);
    file.weight("b", {kOut}, bias, bias_scales, 0, kI32);
    Maker::set(file.maker.node("Conv", {"xd", "w", "b"}, "c"), "pads", Sizes{1, 1, 1, 1});
    file.maker.node("Relu", {"c"}, "r");
    file.pair("r", "rd", of_y);
    file.weight("m", {kSize, kColumns}, product, product_scales, 1);
    file.maker.node("MatMul", {"rd", "m"}, "y");
    file.maker.output("y");
  }
  std::vector<double> operator()(const Floats& x) const {
    const auto n = static_cast<int>(x.size()) / (kIn * kSize * kSize);
    Ints q;
    for (const float value : x) q.push_back(of_x.of(static_cast<double>(value)));
    std::vector<double> y;
    for (int row = 0; row < n * kOut * kSize; ++row) {
      const int image = row / (kOut * kSize), k = row / kSize % kOut, h = row % kSize;
      std::array<int, kSize> line{};
      for (int column = 0; column < kSize; ++column) {
        int sum = bias[std::size_t(k)];
        for (int c = 0; c < kIn; ++c)
          for (int t = 0; t < 9; ++t) {
            const int i = h + t / 3 - 1, j = column + t % 3 - 1;
            if (i >= 0 && i < kSize && j >= 0 && j < kSize)
              sum += q[std::size_t(((image * kIn + c) * kSize + i) * kSize + j)] *
                     conv[std::size_t((k * kIn + c) * 9 + t)];
          }
        const double value = sum * static_cast<double>(of_x.scale) * static_cast<double>(of(conv_scales, k));
        line[std::size_t(column)] = of_y.of(std::max(value, 0.0));
      }
      for (int m = 0; m < kColumns; ++m) {
        int sum = 0;
        for (int i = 0; i < kSize; ++i) sum += line[std::size_t(i)] * product[std::size_t(i * kColumns + m)];
        y.push_back(sum * static_cast<double>(of_y.scale) * static_cast<double>(of(product_scales, m)));
      }
    }
    return y;
  }
};

TEST_F(OnnxQdq, a_convolution_and_a_product_have_the_exact_integers) {
  const Floats x = numbers(2 * 3 * 6 * 6, -1.5F, 2.2F, 4);
  for (const int type : {kU8, kI8})
    for (const bool is_each : {false, true})
      for (const int zero : {0, 37, 128, 255}) {
        const int first = type == kI8 ? 128 : 0;
        Net net{{0.0137F, zero - first, type}, {0.0731F, 11 - first, type}, {0.0021F}, {0.013F}};
        if (is_each) {
          net.conv_scales = {0.001F, 0.0033F, 0.0021F, 0.0007F, 0.0041F};
          net.product_scales = numbers(Net::kColumns, 0.001F, 0.02F, 5);
        }
        const std::string what = std::to_string(type) + ", " + std::to_string(is_each) + ", " + std::to_string(zero);
        Qdq file;
        net.fill(file);
        const Ran ran = run(file, x, {2, 3, 6, 6});
        EXPECT_TRUE(ran.has_int8()) << ran.plan;
        EXPECT_EQ(ran.plan.find("conv"), std::string::npos) << ran.plan;
        expect_close(ran.y, net(x), what);
      }
}

TEST_F(OnnxQdq, pairs_and_weights_leave_the_graph) {
  const Engine engine;
  const Net net{{0.0137F, 3, kU8}, {0.0731F, 0, kU8}, {0.0021F}, {0.013F}};
  const auto fused = [&](bool is_shown, std::size_t bytes_left, int found, Constants& constants) {
    Qdq file;
    net.fill(file);
    ::onnx::GraphProto graph = file.maker.model.graph();
    if (is_shown)
      for (const char* name : {"rd", "w"}) graph.add_output()->set_name(name);
    for (const auto& tensor : graph.initializer()) constants[tensor.name()] = item_of(tensor_of(tensor));
    EXPECT_EQ(fuse_quantised(graph, constants, bytes_left), found);
    std::vector<std::string> ops;
    for (const auto& node : graph.node()) ops.push_back(node.op_type());
    return ops;
  };
  Constants constants, more, few;
  constexpr std::size_t kBytes = 1 << 16;
  EXPECT_EQ(fused(false, kBytes, 2, constants),
            (std::vector<std::string>{"DequantizeLinear", "Int8Conv", "Relu", "Int8MatMul"}));
  ASSERT_TRUE(constants.at("w\1int8").int8) << "made once, when the file is read";
  EXPECT_EQ(constants.at("w\1int8").int8->shape, (Shape{3, 3, 3, 5}));
  EXPECT_EQ(fused(true, kBytes, 2, more), (std::vector<std::string>{"DequantizeLinear", "DequantizeLinear", "Int8Conv",
                                                                    "Relu", "RoundToScale", "Int8MatMul"}));
  fused(false, 4000, 1, few);  // the product's weight has no place any more
}

TEST_F(OnnxQdq, all_modes_give_the_same_numbers) {
  const Net net{{0.0137F, 100, kU8}, {0.0731F, -128, kI8}, {0.001F, 0.003F, 0.002F, 0.0007F, 0.004F}, {0.013F}};
  const Floats x = numbers(3 * 6 * 6, -1.5F, 2.2F, 6);
  expect_same([&](Qdq& file) { net.fill(file); }, x, {1, 3, 6, 6}, true, "the net");
}

TEST_F(OnnxQdq, products_of_all_forms_multiply_integers) {
  const Floats x = numbers(4 * 10, -1.5F, 2.2F, 7), scales = numbers(6, 0.001F, 0.02F, 8);
  const Ints w = whole_numbers(60, -127, 127, 9);
  for (const bool turned : {false, true})
    for (const int bias : {0, 1, 2}) {  // none, one for each column, a matrix
      const auto fill = [&](Qdq& file) {
        file.maker.input("x", {"4", "10"});
        file.pair("x", "xd", {0.0141F, 60, kU8});
        file.weight("w", turned ? Sizes{6, 10} : Sizes{10, 6}, w, scales, turned ? 0 : -1);
        if (bias != 0) file.maker.floats("b", bias == 1 ? Sizes{6} : Sizes{1, 6}, numbers(6, -1, 1, 10));
        auto inputs = std::vector<std::string>{"xd", "w"};
        if (bias != 0) inputs.emplace_back("b");
        Maker::set(file.maker.node("Gemm", inputs, "y"), "transB", std::int64_t{turned});
        file.maker.output("y");
      };
      expect_same(fill, x, {4, 10}, true, "Gemm " + std::to_string(turned) + std::to_string(bias));
    }
  for (const Shape& shape : {Shape{10}, Shape{2, 2, 10}}) {
    const auto fill = [&](Qdq& file) {
      file.maker.input("x",
                       shape.rank() == 1 ? std::vector<std::string>{"10"} : std::vector<std::string>{"2", "2", "10"});
      file.pair("x", "xd", {0.0141F, -60, kI8});
      file.weight("w", {10, 6}, w, {0.01F}, 1);
      file.maker.node("MatMul", {"xd", "w"}, "y");
      file.maker.output("y");
    };
    expect_same(fill, Floats(x.begin(), x.begin() + shape.size()), shape, true, "MatMul " + shape.to_string());
  }
}

struct ConvCase {
  std::string name;
  Sizes x, w, strides, dilations, pads;
  std::string auto_pad;
  int group = 1;
  bool has_int8 = true;
};

TEST_F(OnnxQdq, convolutions_keep_their_attributes) {
  for (const ConvCase& one :
       {ConvCase{"1-D", {2, 3, 11}, {4, 3, 5}, {2}, {1}, {1, 2}, ""},
        ConvCase{"2-D", {1, 3, 9, 7}, {4, 3, 3, 2}, {2, 1}, {1, 2}, {1, 0, 2, 1}, ""},
        ConvCase{"SAME_UPPER", {1, 3, 9, 8}, {4, 3, 3, 2}, {2, 2}, {1, 1}, {}, "SAME_UPPER"},
        ConvCase{"a point", {1, 3, 4, 4}, {4, 3, 1, 1}, {1, 1}, {1, 1}, {}, "VALID"},
        ConvCase{"groups", {1, 4, 6, 6}, {4, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, "", 4, false},
        ConvCase{"3-D", {1, 2, 4, 4, 4}, {3, 2, 2, 2, 2}, {1, 1, 1}, {1, 1, 1}, {}, "", 1, false}}) {
    const auto fill = [&](Qdq& file) {
      std::vector<std::string> sizes;
      for (const auto size : one.x) sizes.push_back(std::to_string(size));
      file.maker.input("x", sizes);
      file.pair("x", "xd", {0.0141F, 90, kU8});
      const auto out = static_cast<std::size_t>(one.w[0]);
      file.weight("w", one.w, whole_numbers(std::size_t(count(one.w)), -127, 127, 11), numbers(out, 0.001F, 0.02F, 12),
                  0);
      auto& node = file.maker.node("Conv", {"xd", "w"}, "y");
      Maker::set(node, "strides", one.strides);
      Maker::set(node, "dilations", one.dilations);
      Maker::set(node, "group", std::int64_t{one.group});
      if (!one.pads.empty()) Maker::set(node, "pads", one.pads);
      if (!one.auto_pad.empty()) Maker::set(node, "auto_pad", one.auto_pad);
      file.maker.output("y");
    };
    expect_same(fill, numbers(std::size_t(count(one.x)), -1.5F, 2.2F, 13), Shape{std::span(one.x)}, one.has_int8,
                one.name);
  }
}

TEST_F(OnnxQdq, weights_that_the_kernels_do_not_have_are_multiplied_in_f32) {
  const Floats x = numbers(40, -1.5F, 2.2F, 14);
  const auto product = [](Grid grid, Ints w, const Floats& scales, int axis, int type, int zero) {
    return [=](Qdq& file) {
      file.maker.input("x", {"4", "10"});
      file.pair("x", "xd", grid);
      file.weight("w", {10, 6}, w, scales, axis, type, zero);
      file.maker.node("MatMul", {"xd", "w"}, "y");
      file.maker.output("y");
    };
  };
  const Grid grid{0.0141F, 60, kU8};
  const Ints w = whole_numbers(60, -127, 127, 15);
  Ints lowest = w;
  lowest[7] = -128;
  expect_same(product(grid, lowest, {0.01F}, 1, kI8, 0), x, {4, 10}, false, "-128");
  expect_same(product(grid, w, {0.01F}, 1, kI8, 3), x, {4, 10}, false, "a zero point");
  expect_same(product(grid, whole_numbers(60, 0, 255, 16), {0.01F}, 1, kU8, 128), x, {4, 10}, false, "u8");
  expect_same(product(grid, w, numbers(10, 0.001F, 0.02F, 17), 0, kI8, 0), x, {4, 10}, false, "scales of rows");
  expect_same(product({0.0002F, 30000, kU16}, w, {0.01F}, 1, kI8, 0), x, {4, 10}, false, "16 bits");
}

TEST_F(OnnxQdq, a_weight_of_two_products_is_packed_once) {
  const Engine engine;
  Qdq file;
  file.maker.input("x", {"6", "6"});
  file.pair("x", "xd", {0.0141F, 60, kU8});
  file.weight("w", {6, 6}, whole_numbers(36, -127, 127, 18), {0.01F}, 1);
  file.maker.node("MatMul", {"xd", "w"}, "a");
  file.maker.node("Gemm", {"xd", "w"}, "b");
  Maker::set(file.maker.node("Gemm", {"xd", "w"}, "c"), "transB", std::int64_t{1});
  for (const char* name : {"a", "b", "c"}) file.maker.output(name);
  ::onnx::GraphProto graph = file.maker.model.graph();
  Constants constants;
  for (const auto& tensor : graph.initializer()) constants[tensor.name()] = item_of(tensor_of(tensor));
  std::size_t bytes_left = 1 << 16;
  EXPECT_EQ(fuse_quantised(graph, constants, bytes_left), 3);
  EXPECT_EQ(std::count_if(constants.begin(), constants.end(), [](const auto& one) { return one.second.int8; }), 2);
}

TEST_F(OnnxQdq, a_weight_that_others_read_stays) {
  const auto fill = [](Qdq& file) {
    file.maker.input("x", {"6", "6"});
    file.pair("x", "xd", {0.0141F, 60, kU8});
    file.weight("w", {6, 6}, whole_numbers(36, -127, 127, 18), {0.01F}, 1);
    file.maker.node("MatMul", {"xd", "w"}, "m");
    file.maker.node("Add", {"m", "w"}, "a");
    file.maker.node("Add", {"a", "xd"}, "y");
    file.maker.output("y");
  };
  expect_same(fill, numbers(36, -1.5F, 2.2F, 19), {6, 6}, true, "shared");
}

// Against the numbers of the host, to the last bit: halves, both ends, and far outside.
TEST_F(OnnxQdq, a_pair_rounds_on_the_device_as_the_host_does) {
  Floats x = numbers(500, -4, 4, 20);
  for (int i = -300; i <= 300; ++i) x.push_back(static_cast<float>(i) * 0.0625F);
  for (const float far : {1e4F, -1e4F, 3e38F, -3e38F, 0.0F}) x.push_back(far);
  for (const auto& [type, zero] : {std::pair{kU8, 0}, {kU8, 131}, {kI8, -5}, {kU16, 40000}, {kI16, 0}})
    for (const float scale : {0.125F, 0.0371F, 1e-4F}) {
      Qdq file, split{.is_split = true};
      for (Qdq* const one : {&file, &split}) {
        one->maker.input("x", {"n"});
        one->pair("x", "y", {scale, zero, type});
        one->maker.output("y");
      }
      const Shape shape{std::ssize(x)};
      EXPECT_EQ(run(file, x, shape).y, run(split, x, shape).y) << type << ", " << zero << ", " << scale;
    }
  Qdq file;
  file.maker.input("x", {"n"});
  file.pair("x", "y", {0.1F, 3, kU8});
  file.maker.output("y");
  Engine engine;
  Model model = load(file.maker.saved(folder));
  EXPECT_TRUE(model.parameters().empty()) << "scales are no parameters";
  const Array given = array(x, {std::ssize(x)});
  given.wait();
  const auto before = engine.plans().launches;
  const Array y = model.forward(given);
  EXPECT_EQ(engine.plans().launches, before) << "nothing is read";
  y.wait();
  EXPECT_EQ(engine.plans().launches, before + 1);
}

TEST_F(OnnxQdq, a_file_that_is_written_again_is_the_same) {
  const Net net{{0.0137F, 3, kU8}, {0.0731F, 0, kU8}, {0.0021F}, {0.013F}};
  Qdq file;
  net.fill(file);
  const Floats x = numbers(3 * 6 * 6, -1.5F, 2.2F, 21);
  const Engine engine;
  Model model = load(file.maker.saved(folder));
  const std::string path = folder / "again.onnx";
  save(path, model);
  Model again = load(path);
  const NoGrad no_grad;
  EXPECT_EQ(contiguous(again.forward(array(x, {1, 3, 6, 6}))).to_vector<float>(),
            contiguous(model.forward(array(x, {1, 3, 6, 6}))).to_vector<float>());
}

TEST_F(OnnxQdq, a_file_cannot_name_the_operators_itself) {
  Maker maker(17);
  maker.input("x", {"2", "3"});
  maker.floats("w", {3, 2}, {1, 2, 3, 4, 5, 6});
  maker.node("Int8MatMul", {"x", "w"}, "y").set_domain("samebytes");
  maker.output("y");
  const Engine engine;
  Model model = load(maker.saved(folder));
  const std::string message = message_of([&] { model.forward(ones({2, 3})).wait(); });
  EXPECT_NE(message.find("its weight was not prepared"), std::string::npos) << message;
}

}  // namespace
}  // namespace samebytes::onnx
