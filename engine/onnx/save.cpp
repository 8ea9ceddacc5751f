// Writing a module or a function as an ONNX model: traced once, nothing evaluated but constants.
#include "onnx/graph_writer.h"
#include "onnx/model_file.h"
#include "onnx/traced.h"
#include "samebytes/error.h"
#include "samebytes/nn/inference.h"

namespace samebytes::onnx {
namespace {

constexpr int kWrittenOpset = 18, kIrVersion = 8;

// From [N, ..., C] to [N, C, ...], where the array has the axes of images or volumes.
Writer::Ints door(const Array& array, const SaveOptions& options) {
  const int rank = array.shape().rank();
  if (!options.channels_first || rank < 4 || rank > 5) return {};
  Writer::Ints order{0, rank - 1};
  for (int i = 1; i < rank - 1; ++i) order.push_back(i);
  return order;
}

std::vector<std::string> names(const std::vector<std::string>& given, const char* stem, std::size_t count) {
  if (!given.empty() && given.size() != count)
    throw ArgumentError("onnx: " + std::to_string(given.size()) + " names for " + std::to_string(count) + " " + stem +
                        "s");
  if (!given.empty()) return given;
  std::vector<std::string> result;
  for (std::size_t i = 0; i < count; ++i) result.push_back(count == 1 ? stem : stem + ("_" + std::to_string(i)));
  return result;
}

}  // namespace

void save(const std::string& path, const Traced& function, std::span<const Array> examples,
          const std::vector<nn::NamedArray>& state, const SaveOptions& options) {
  for (const Array& example : examples)
    if (!example.defined()) throw ArgumentError("onnx: an example is an empty handle");
  const std::vector<Array> outputs = [&] {
    const StaysOnDevice guard(examples);
    return function(examples);
  }();
  for (const Array& output : outputs)
    if (!output.defined()) throw ArgumentError("onnx: the function gave an empty handle");
  ::onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("samebytes");
  model.add_opset_import()->set_version(kWrittenOpset);
  model.mutable_graph()->set_name("model");
  Writer writer(*model.mutable_graph());
  const auto input_names = names(options.inputs, "input", examples.size());
  const auto output_names = names(options.outputs, "output", outputs.size());
  for (std::size_t i = 0; i < examples.size(); ++i)
    writer.input(examples[i], input_names[i], door(examples[i], options));
  writer.reserve(output_names);
  for (const auto& entry : state) writer.state(entry);
  writer.nodes(outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    writer.output(outputs[i], output_names[i], door(outputs[i], options));
  writer.finish();
  write_model(path, model);
}

void save(const std::string& path, nn::Module& module, const Array& example, const SaveOptions& options) {
  if (const auto* const frozen = dynamic_cast<const nn::FrozenModule*>(&module))  // its names, not its kept values
    return save(path, frozen->module(), example, options);
  std::vector<std::pair<nn::Module*, bool>> modes;  // a parent's mode is set before those of its children
  for (const auto& [name, part] : module.modules()) modes.emplace_back(part, part->is_training());
  module.eval();
  struct Back {
    std::vector<std::pair<nn::Module*, bool>>& modes;
    ~Back() {
      for (const auto& [part, was_training] : modes) part->train(was_training);
    }
  } back{modes};
  SaveOptions own = options;
  if (dynamic_cast<const Model*>(&module) != nullptr) own.channels_first = false;
  const Traced traced = [&](std::span<const Array> inputs) -> std::vector<Array> { return {module(inputs[0])}; };
  save(path, traced, {&example, 1}, module.state(), own);
}

}  // namespace samebytes::onnx
