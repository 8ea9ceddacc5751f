// The file behind a Model, how it is read and written, and what its nodes say of its graph.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "onnx/check.h"
#include "onnx/item.h"
#include "onnx/proto.h"

namespace samebytes::onnx {

struct Model::File {
  ::onnx::ModelProto proto;                                       // parameters and buffers without their values
  std::map<std::string, const ::onnx::FunctionProto*> functions;  // "domain:Name"
  ::onnx::GraphProto running;             // its nodes as they run: fused, without those that read constants alone
  std::map<std::string, Item> constants;  // initializers that are not parameters, and what follows from them alone
  std::vector<std::string> inputs, outputs;

  void find_functions() {
    functions.clear();
    for (const auto& function : proto.functions()) functions[key_of(function.domain(), function.name())] = &function;
  }
};

// Throw IoError.
::onnx::ModelProto read_model(const std::string& path);
void write_model(const std::string& path, const ::onnx::ModelProto& model);

std::set<std::string> initializer_names(const ::onnx::GraphProto& graph);
Summary summary_of(const ::onnx::ModelProto& model);

// The first size of all inputs that are not initializers becomes open, and where it is written elsewhere: in outputs,
// and in the shapes of Reshape.
void open_batch(::onnx::GraphProto& graph);

}  // namespace samebytes::onnx
