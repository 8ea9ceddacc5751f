#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/onnx.h"
#include "samebytes/ops.h"

#include "onnx/maker.h"
#include "support/files.h"

namespace samebytes::onnx {
namespace {

using testing::TemporaryFolder;

void expect_refused(const Maker& maker, const std::vector<std::string>& parts) {
  const Engine engine;
  const TemporaryFolder folder;
  const std::string text = message_of([&] { load(maker.saved(folder)); });
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}

TEST(Onnx, initializers_are_parameters_with_their_names_and_gradients) {
  const Engine engine;
  const TemporaryFolder folder;
  Model model = load(linear_model().saved(folder));
  EXPECT_EQ(model.inputs(), std::vector<std::string>{"x"});
  ASSERT_EQ(model.named_parameters().size(), 2u);
  EXPECT_EQ(model.named_parameters()[0].name, "layer.weight");
  const Array y = model.forward(array({1, 1, 2, 0}, {2, 2}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{13, 27, 41, 12, 26, 40}));
  const auto made = gradients(sum(y), model.parameters());
  EXPECT_EQ(made[0].to_vector<float>(), (std::vector<float>{3, 1, 3, 1, 3, 1}));
  EXPECT_EQ(made[1].to_vector<float>(), (std::vector<float>{2, 2, 2}));
}

TEST(Onnx, shape_arithmetic_is_known_when_a_reshape_needs_it) {
  const Engine engine;
  const TemporaryFolder folder;
  Maker maker;
  maker.input("x", {"n", "2", "3"});
  maker.ints("zero", {0});
  maker.ints("rest", {-1});
  maker.node("Shape", {"x"}, "shape");
  maker.node("Gather", {"shape", "zero"}, "n_of_x");
  auto& joined = maker.node("Concat", {"n_of_x", "rest"}, "target");
  joined.add_attribute()->set_name("axis");
  maker.node("Reshape", {"x", "target"}, "y");
  maker.output("y");
  maker.output("target");
  Model model = load(maker.saved(folder));
  const auto outputs = model.run({{"x", zeros({4, 2, 3})}});
  EXPECT_EQ(std::get<Array>(outputs.at("y")).shape(), (Shape{4, 6}));
  EXPECT_EQ(std::get<Tensor>(outputs.at("target")).type, Type::i64);
}

TEST(Onnx, a_convolution_is_the_librarys_in_the_models_order_of_axes) {
  const Engine engine;
  const TemporaryFolder folder;
  Maker maker;
  maker.input("x", {"1", "2", "3", "3"});
  maker.floats("w", {1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  maker.node("Conv", {"x", "w"}, "c");
  maker.node("Relu", {"c"}, "y");
  maker.output("y");
  Model model = load(maker.saved(folder));
  EXPECT_EQ(model.named_parameters()[0].layout, nn::Layout::conv);
  std::vector<float> x(18);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const Array y = model.forward(array(x, {1, 2, 3, 3}));
  EXPECT_EQ(y.shape(), (Shape{1, 1, 2, 2}));
  EXPECT_EQ(contiguous(y).to_vector<float>(), (std::vector<float>{320, 356, 428, 464}));
}

void add_ints(::onnx::NodeProto& node, const std::string& key, const std::vector<std::int64_t>& values) {
  auto& attribute = *node.add_attribute();
  attribute.set_name(key);
  attribute.set_type(::onnx::AttributeProto::INTS);
  for (const auto value : values) attribute.add_ints(value);
}

TEST(Onnx, unpooling_puts_back_what_pooling_with_indices_took) {
  const Engine engine;
  const TemporaryFolder folder;
  Maker maker;
  maker.input("x", {"1", "2", "2", "4"});
  auto& pool = maker.node("MaxPool", {"x"}, "most");
  pool.add_output("places");
  auto& unpool = maker.node("MaxUnpool", {"most", "places"}, "y");
  for (auto* node : {&pool, &unpool}) {
    add_ints(*node, "kernel_shape", {2, 2});
    add_ints(*node, "strides", {2, 2});
  }
  maker.output("y");
  maker.output("places");
  Model model = load(maker.saved(folder));
  const auto outputs = model.run({{"x", array({1, 2, 8, 3, 4, 3, 2, 1, 9, 0, 0, 0, 0, 0, 0, 7}, {1, 2, 2, 4})}});
  EXPECT_EQ(contiguous(std::get<Array>(outputs.at("y"))).to_vector<float>(),
            (std::vector<float>{0, 0, 8, 0, 4, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 7}));
  EXPECT_EQ(std::get<Tensor>(outputs.at("places")).type, Type::i64);
}

TEST(Onnx, one_place_may_be_written_any_number_of_times) {
  const Engine engine;
  const TemporaryFolder folder;
  Maker maker;
  maker.input("x", {"2"});
  maker.ints("places", std::vector<std::int64_t>(1500, 1));
  maker.floats("values", {1500}, std::vector<float>(1500, 0.5f));
  auto& sums = maker.node("ScatterElements", {"x", "places", "values"}, "y");
  auto& reduction = *sums.add_attribute();
  reduction.set_name("reduction");
  reduction.set_type(::onnx::AttributeProto::STRING);
  reduction.set_s("add");
  maker.output("y");
  Model model = load(maker.saved(folder));
  EXPECT_EQ(model.forward(array({3, 1}, {2})).to_vector<float>(), (std::vector<float>{3, 751}));
}

TEST(Onnx, unsupported_operators_are_listed_together) {
  Maker maker = linear_model();
  maker.node("Unheard", {"y"}, "a");
  maker.node("Unseen", {"a"}, "b");
  expect_refused(maker, {"2 nodes", "Unheard 'the Unheard'", "Unseen 'the Unseen'"});
}

TEST(Onnx, cycles_and_repeated_names_are_refused) {
  Maker cycle = linear_model();
  cycle.node("Relu", {"later"}, "now");
  cycle.node("Relu", {"now"}, "later");
  expect_refused(cycle, {"the Relu", "'later'", "cycle"});
  Maker twice = linear_model();
  twice.node("Relu", {"y"}, "y");
  expect_refused(twice, {"'y'", "exists already"});
}

TEST(Onnx, functions_that_call_themselves_are_refused) {
  Maker maker = linear_model();
  auto& function = *maker.model.add_functions();
  function.set_name("F");
  function.set_domain("local");
  function.add_input("a");
  function.add_output("b");
  auto& inner = *function.add_node();
  inner.set_op_type("F");
  inner.set_domain("local");
  inner.add_input("a");
  inner.add_output("b");
  maker.node("F", {"y"}, "z").set_domain("local");
  expect_refused(maker, {"nested deeper"});
}

TEST(Onnx, damaged_tensors_are_refused) {
  Maker overflow = linear_model();
  overflow.floats("huge", {std::int64_t{1} << 40, std::int64_t{1} << 40}, {1});
  expect_refused(overflow, {"too large"});
  Maker few = linear_model();
  few.floats("few", {5}, {1, 2});
  expect_refused(few, {"'few'", "2 values", "5"});
}

TEST(Onnx, external_data_stay_in_the_folder_and_inside_the_file) {
  const Engine engine;
  const TemporaryFolder folder;
  const auto with = [&](const std::string& location, const std::string& offset) {
    Maker maker;
    maker.input("x", {"2"});
    auto& tensor = maker.floats("w", {2}, {});
    tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair{"location", location}, std::pair{"offset", offset}}) {
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    maker.node("Add", {"x", "w"}, "y");
    maker.output("y");
    return maker.saved(folder);
  };
  const std::vector<float> values{1, 2, 3, 4};
  std::ofstream(folder / "w.bin", std::ios::binary).write(reinterpret_cast<const char*>(values.data()), 16);
  EXPECT_EQ(load(with("w.bin", "8")).forward(array({10, 20})).to_vector<float>(), (std::vector<float>{13, 24}));
  EXPECT_NE(message_of([&] { load(with("w.bin", "12")); }).find("wants 8 bytes at 12"), std::string::npos);
  EXPECT_NE(message_of([&] { load(with("w.bin", "18446744073709551612")); }).find("wants 8"), std::string::npos);
  EXPECT_NE(message_of([&] { load(with("../w.bin", "0")); }).find("outside"), std::string::npos);
  EXPECT_NE(message_of([&] { load(with("/etc/passwd", "0")); }).find("outside"), std::string::npos);
}

TEST(Onnx, a_size_of_minus_one_is_open) {
  const Engine engine;
  const TemporaryFolder folder;
  Maker maker;
  maker.input("x", {"1", "2"});
  auto& type = *maker.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
  type.mutable_shape()->mutable_dim(0)->set_dim_value(-1);
  maker.node("Relu", {"x"}, "y");
  maker.output("y");
  Model model = load(maker.saved(folder));
  EXPECT_EQ(model.summary().inputs[0].sizes, (std::vector<std::string>{"?", "2"}));
  EXPECT_EQ(model.forward(zeros({5, 2})).shape(), (Shape{5, 2}));
  EXPECT_NE(message_of([&] { model.forward(zeros({5, 3})); }).find("size 3, expected 2"), std::string::npos);
}

// Positions and masks of text: exact beyond what a float holds.
TEST(Onnx, question_marks_are_open_sizes_of_their_own) {
  const Engine engine;
  const TemporaryFolder folder;
  Maker maker;
  maker.input("x", {"?", "3", "?"});
  maker.node("Relu", {"x"}, "y");
  maker.output("y");
  Model model = load(maker.saved(folder));
  EXPECT_EQ(model.forward(zeros({2, 3, 4})).shape(), (Shape{2, 3, 4}));
}

TEST(Onnx, running_sums_and_places_of_integers_are_exact) {
  const Engine engine;
  const TemporaryFolder folder;
  Maker maker;
  maker.input("x", {"2", "3"}, 7);
  maker.ints("axis", {1});
  maker.node("CumSum", {"x", "axis"}, "sum");
  for (const char* key : {"reverse", "exclusive"}) {
    if (std::string(key) == "reverse") maker.node("CumSum", {"x", "axis"}, "back");
    auto& attribute = *maker.model.mutable_graph()->mutable_node(1)->add_attribute();
    attribute.set_name(key);
    attribute.set_type(::onnx::AttributeProto::INT);
    attribute.set_i(1);
  }
  auto& places = maker.node("ArgMax", {"x"}, "place");
  auto& axis = *places.add_attribute();
  axis.set_name("axis");
  axis.set_type(::onnx::AttributeProto::INT);
  axis.set_i(1);
  for (const char* name : {"sum", "back", "place"}) maker.output(name);
  Model model = load(maker.saved(folder));
  const std::vector<std::int64_t> values{1, (1LL << 30) + 1, 5, 7, -2, 16777217};
  Tensor x{Type::i64, {2, 3}, std::vector<std::byte>(48)};
  std::memcpy(x.bytes.data(), values.data(), 48);
  const auto outputs = model.run({{"x", x}});
  const auto ints = [&](const char* name) {
    const auto& tensor = std::get<Tensor>(outputs.at(name));
    std::vector<std::int64_t> got(tensor.bytes.size() / 8);
    std::memcpy(got.data(), tensor.bytes.data(), tensor.bytes.size());
    return got;
  };
  EXPECT_EQ(ints("sum"), (std::vector<std::int64_t>{1, (1LL << 30) + 2, (1LL << 30) + 7, 7, 5, 16777222}));
  EXPECT_EQ(ints("back"), (std::vector<std::int64_t>{(1LL << 30) + 6, 5, 0, 16777215, 16777217, 0}));
  EXPECT_EQ(ints("place"), (std::vector<std::int64_t>{1, 2}));
}

TEST(Onnx, sizes_with_one_name_are_equal) {
  const Engine engine;
  const TemporaryFolder folder;
  Maker maker;
  maker.input("a", {"n"});
  maker.input("b", {"n"});
  maker.node("Add", {"a", "b"}, "y");
  maker.output("y");
  Model model = load(maker.saved(folder));
  EXPECT_NE(message_of([&] { model.run({{"a", zeros({2})}, {"b", zeros({3})}}); }).find("'n'"), std::string::npos);
  EXPECT_NE(message_of([&] { model.run({{"a", zeros({2})}}); }).find("'b' is missing"), std::string::npos);
}

}  // namespace
}  // namespace samebytes::onnx
