// A model file of one node, as a function of its inputs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "onnx/maker.h"
#include "samebytes/onnx.h"

namespace samebytes::onnx {

// A file whose inputs a, b, ... are f64 of these sizes, and whose node reads them; "" leaves an input out.
struct OneNode {
  Maker maker;
  ::onnx::NodeProto* node = nullptr;
  std::vector<std::string> names;

  OneNode(const std::string& op, const std::vector<std::string>& in, int opset = 24) : maker(opset) {
    node = &maker.node(op, in, "y");
    for (const auto& name : in)
      if (!name.empty() && name != "lengths") names.push_back(name);
    maker.output("y");
  }
  // The node's first output, as a function of its floating inputs.
  testing::ArrayFunction function(const TemporaryFolder& folder, const std::vector<testing::GradientInput>& inputs,
                                  const std::map<std::string, Value>& others = {}) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      std::vector<std::string> sizes;
      for (const auto size : inputs[i].shape) sizes.push_back(std::to_string(size));
      maker.input(names[i], sizes, kF64);
    }
    for (const auto& [name, value] : others) maker.input(name, {"n"}, 6);
    const auto model = std::make_shared<Model>(load(maker.saved(folder)));
    return [model, names = names, others](std::span<const Array> x) {
      auto given = others;
      for (std::size_t i = 0; i < x.size(); ++i) given[names[i]] = x[i];
      return std::get<Array>(model->run(given).at("y"));
    };
  }
};

}  // namespace samebytes::onnx
