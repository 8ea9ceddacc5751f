#include "onnx/model_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "io/mapped_file.h"
#include "onnx/call.h"
#include "onnx/runner.h"
#include "samebytes/error.h"
#include "samebytes/io/files.h"

namespace samebytes::onnx {
namespace {

constexpr std::int64_t kLargestFile = (std::int64_t{1} << 31) - 1;  // protobuf's own limit
constexpr const char* kBatch = "batch";                             // the symbol of an opened size

Type type_of_number(int type) {
  const bool is_known = type > 0 && type <= static_cast<int>(Type::bf16) && bytes_of(static_cast<Type>(type)) > 0;
  return is_known ? static_cast<Type>(type) : Type::none;
}

Port port_of(const ::onnx::ValueInfoProto& info) {
  Port port{info.name(), Type::none, {}};
  if (!info.type().has_tensor_type()) return port;
  const auto& tensor = info.type().tensor_type();
  port.type = type_of_number(tensor.elem_type());
  for (const auto& dim : tensor.shape().dim())
    port.sizes.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? std::to_string(dim.dim_value())
                         : dim.dim_param().empty()                   ? "?"
                                                                     : dim.dim_param());
  return port;
}

Port port_of(const ::onnx::TensorProto& tensor) {
  Port port{tensor.name(), type_of_number(tensor.data_type()), {}};
  for (const std::int64_t size : tensor.dims()) port.sizes.push_back(std::to_string(size));
  return port;
}

void count_operators(const ::onnx::GraphProto& graph, std::map<std::string, std::int64_t>& operators) {
  for (const auto& node : graph.node()) {
    ++operators[node.op_type()];
    for (const auto& attribute : node.attribute())
      if (attribute.has_g()) count_operators(attribute.g(), operators);
  }
}

// The numbers that a value is made of in the file: an initializer, or a Constant node.
std::vector<std::int64_t> fixed_ints(const ::onnx::GraphProto& graph, const std::string& name) {
  const ::onnx::TensorProto* found = nullptr;
  for (const auto& tensor : graph.initializer())
    if (tensor.name() == name) found = &tensor;
  for (const auto& node : graph.node())
    if (node.op_type() == "Constant" && node.output_size() > 0 && node.output(0) == name)
      for (const auto& attribute : node.attribute())
        if (attribute.name() == "value") found = &attribute.t();
  if (found == nullptr || found->data_type() != static_cast<int>(Type::i64) ||
      found->data_location() == ::onnx::TensorProto::EXTERNAL)
    return {};
  return ints_of(item_of(tensor_of(*found)));
}

// Exporters write the batch into the shapes of Reshape, too: [1, 512] becomes [-1, 512], and [1, -1] of a value that
// depends on the input [0, -1], in which 0 stands for the value's own first size.
void open_reshapes(::onnx::GraphProto& graph, const std::set<std::int64_t>& batches) {
  const std::set<std::string> initializers = initializer_names(graph);
  for (int i = 0; i < graph.node_size(); ++i) {
    auto& node = *graph.mutable_node(i);
    if (node.op_type() != "Reshape" || node.input_size() != 2 || initializers.contains(node.input(0))) continue;
    std::vector<std::int64_t> sizes = fixed_ints(graph, node.input(1));
    if (sizes.size() < 2 || !batches.contains(sizes[0])) continue;
    sizes[0] = std::find(sizes.begin(), sizes.end(), -1) == sizes.end() ? -1 : 0;
    auto& shape = *graph.add_initializer();
    shape.set_name(node.input(1) + " of node " + std::to_string(i) + " for any batch");
    shape.set_data_type(static_cast<int>(Type::i64));
    shape.add_dims(std::ssize(sizes));
    for (const std::int64_t size : sizes) shape.add_int64_data(size);
    node.set_input(1, shape.name());
  }
}

}  // namespace

::onnx::ModelProto read_model(const std::string& path) {
  std::error_code code;
  const auto bytes = std::filesystem::file_size(path, code);
  if (code) throw IoError("onnx: cannot open the file " + path, path);
  if (bytes > static_cast<std::uintmax_t>(kLargestFile))
    throw IoError("onnx: " + path + " is over 2 GB; such a model keeps its weights in external data", path);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto mapped = file >= 0 && bytes > 0 ? io::MappedFile::map(file, bytes) : nullptr;
  if (file >= 0) ::close(file);
  // Of bytes whose end it knows, protobuf reserves nothing for a string that says it is longer than they are.
  ::onnx::ModelProto model;
  if (mapped == nullptr || !model.ParseFromArray(mapped->data(), static_cast<int>(bytes)) || !model.has_graph())
    throw IoError("onnx: " + path + " is not an ONNX model, or it is damaged", path);
  return model;
}

void write_model(const std::string& path, const ::onnx::ModelProto& model) {
  if (model.ByteSizeLong() > static_cast<std::size_t>(kLargestFile))
    throw ArgumentError("onnx: the model has " + std::to_string(model.ByteSizeLong()) +
                        " bytes, expected at most 2 GB, which is the format's limit for one file");
  io::write_file(path, std::string_view(model.SerializeAsString()));
}

std::set<std::string> initializer_names(const ::onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
  return names;
}

Summary summary_of(const ::onnx::ModelProto& model) {
  const auto& graph = model.graph();
  Summary result{opset_of(model.opset_import()), model.producer_name(), {}, {}, {}, {}};
  const std::set<std::string> initializers = initializer_names(graph);
  for (const auto& input : graph.input())
    if (!initializers.contains(input.name())) result.inputs.push_back(port_of(input));
  for (const auto& output : graph.output()) result.outputs.push_back(port_of(output));
  for (const auto& tensor : graph.initializer()) result.tensors.push_back(port_of(tensor));
  count_operators(graph, result.operators);
  return result;
}

Summary read_summary(const std::string& path) { return summary_of(read_model(path)); }

void open_batch(::onnx::GraphProto& graph) {
  const std::set<std::string> initializers = initializer_names(graph);
  std::set<std::int64_t> opened;
  const auto first_of = [](::onnx::ValueInfoProto& info) -> ::onnx::TensorShapeProto_Dimension* {
    if (!info.type().has_tensor_type() || info.type().tensor_type().shape().dim_size() == 0) return nullptr;
    return info.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0);
  };
  for (auto& input : *graph.mutable_input())
    if (auto* const dim = first_of(input);
        dim != nullptr && dim->has_dim_value() && !initializers.contains(input.name())) {
      opened.insert(dim->dim_value());
      dim->set_dim_param(kBatch);
    }
  for (auto& output : *graph.mutable_output())
    if (auto* const dim = first_of(output); dim != nullptr && dim->has_dim_value() && opened.contains(dim->dim_value()))
      dim->set_dim_param(kBatch);
  open_reshapes(graph, opened);
  if (!opened.empty()) graph.clear_value_info();  // sizes of values in between, which would contradict
}

}  // namespace samebytes::onnx
