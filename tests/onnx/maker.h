// A model file under construction, for tests of the reader.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "onnx/proto.h"
#include "samebytes/error.h"
#include "samebytes/onnx.h"
#include "samebytes/ops.h"
#include "support/files.h"
#include "support/gradcheck.h"

namespace samebytes::onnx {

using testing::TemporaryFolder;

// A model under construction.
struct Maker {
  ::onnx::ModelProto model;

  explicit Maker(int opset = 17) {
    model.set_ir_version(8);
    model.add_opset_import()->set_version(opset);
    model.mutable_graph()->set_name("test");
  }
  static void value(::onnx::ValueInfoProto& info, const std::string& name, const std::vector<std::string>& sizes,
                    int type) {
    info.set_name(name);
    auto& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    auto& shape = *tensor.mutable_shape();
    for (const std::string& size : sizes) {
      if (size[0] >= '0' && size[0] <= '9')
        shape.add_dim()->set_dim_value(std::stoll(size));
      else
        shape.add_dim()->set_dim_param(size);
    }
  }
  void input(const std::string& name, const std::vector<std::string>& sizes, int type = 1) {
    value(*model.mutable_graph()->add_input(), name, sizes, type);
  }
  void output(const std::string& name) { model.mutable_graph()->add_output()->set_name(name); }
  ::onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& in, const std::string& out) {
    auto& made = *model.mutable_graph()->add_node();
    made.set_op_type(op);
    made.set_name("the " + op);
    for (const auto& name : in) made.add_input(name);
    made.add_output(out);
    return made;
  }
  ::onnx::TensorProto& floats(const std::string& name, const std::vector<std::int64_t>& sizes,
                              const std::vector<float>& values) {
    auto& tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(1);
    for (const auto size : sizes) tensor.add_dims(size);
    for (const float one : values) tensor.add_float_data(one);
    return tensor;
  }
  void ints(const std::string& name, const std::vector<std::int64_t>& values) {
    auto& tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(7);
    tensor.add_dims(std::ssize(values));
    for (const auto one : values) tensor.add_int64_data(one);
  }
  // Attributes of a node.
  static ::onnx::AttributeProto& attribute(::onnx::NodeProto& node, const std::string& name,
                                           ::onnx::AttributeProto::AttributeType type) {
    auto& made = *node.add_attribute();
    made.set_name(name);
    made.set_type(type);
    return made;
  }
  static void set(::onnx::NodeProto& node, const std::string& name, std::int64_t value) {
    attribute(node, name, ::onnx::AttributeProto::INT).set_i(value);
  }
  static void set(::onnx::NodeProto& node, const std::string& name, const std::string& value) {
    attribute(node, name, ::onnx::AttributeProto::STRING).set_s(value);
  }
  static void set(::onnx::NodeProto& node, const std::string& name, const std::vector<std::int64_t>& values) {
    auto& made = attribute(node, name, ::onnx::AttributeProto::INTS);
    for (const auto value : values) made.add_ints(value);
  }
  static void set_real(::onnx::NodeProto& node, const std::string& name, float value) {
    attribute(node, name, ::onnx::AttributeProto::FLOAT).set_f(value);
  }
  std::string saved(const TemporaryFolder& folder) const {
    const std::string path = folder / "model.onnx";
    std::ofstream out(path, std::ios::binary);
    model.SerializeToOstream(&out);
    return path;
  }
};

constexpr int kF64 = 11;  // ONNX's number for it

inline std::vector<Array> arrays_of(const std::vector<testing::GradientInput>& inputs) {
  std::vector<Array> arrays;
  for (const auto& input : inputs) arrays.push_back(testing::real_array(input.values, input.shape, f64));
  return arrays;
}

inline std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// What loading and running a hostile model says, which takes no time. An input of it is an image of 3 x 3.
inline std::string outcome_of(const Maker& maker, const char* what) {
  const TemporaryFolder folder;
  const auto begin = std::chrono::steady_clock::now();
  const std::string text = message_of([&] {
    Model model = load(maker.saved(folder));
    std::map<std::string, Value> given;
    for (const auto& name : model.inputs()) given[name] = ones({1, 1, 3, 3});
    for (auto& [name, value] : model.run(given))
      if (auto* const array = std::get_if<Array>(&value)) array->eval();
  });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took.count(), 20.0) << what;
  return text;
}

inline Maker linear_model() {
  Maker maker;
  maker.input("x", {"batch", "2"});
  maker.floats("layer.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  maker.floats("layer.bias", {3}, {10, 20, 30});
  auto& attribute = *maker.node("Gemm", {"x", "layer.weight", "layer.bias"}, "y").add_attribute();
  attribute.set_name("transB");
  attribute.set_type(::onnx::AttributeProto::INT);
  attribute.set_i(1);
  maker.output("y");
  return maker;
}

}  // namespace samebytes::onnx
