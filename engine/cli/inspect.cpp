// samebytes inspect: what is in a file of a model or of tensors.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "cli/session.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/error.h"
#include "samebytes/io/safetensors.h"
#include "samebytes/onnx.h"

namespace samebytes::cli {
namespace {

struct Row {
  std::string name, type;
  Shape shape;
  std::size_t bytes = 0;
};

std::string ports_text(const std::vector<onnx::Port>& ports) {
  std::string text;
  for (const onnx::Port& port : ports)
    text += fmt::format("  {}  {} [{}]\n", port.name, onnx::name_of(port.type), fmt::join(port.sizes, ", "));
  return text;
}

Json ports_json(const std::vector<onnx::Port>& ports) {
  Json list = Json::array();
  for (const onnx::Port& port : ports)
    list.push_back({{"name", port.name}, {"type", onnx::name_of(port.type)}, {"sizes", port.sizes}});
  return list;
}

void print_tensors(const std::vector<Row>& rows, bool as_json, Json& json) {
  std::size_t bytes = 0, width = 0;
  std::int64_t values = 0;
  for (const Row& row : rows) {
    bytes += row.bytes;
    values += row.shape.size();
    width = std::max(width, row.name.size());
  }
  json["values"] = values;
  json["bytes"] = bytes;
  json["tensors"] = Json::array();
  for (const Row& row : rows) {
    if (as_json)
      json["tensors"].push_back({{"name", row.name},
                                 {"type", row.type},
                                 {"shape", std::vector<std::int64_t>(row.shape.begin(), row.shape.end())},
                                 {"bytes", row.bytes}});
    else
      fmt::print("  {:<{}}  {:<6} {}\n", row.name, std::min<std::size_t>(width, 60), row.type, row.shape.to_string());
  }
  if (!as_json) fmt::print("{} tensors, {} values, {}\n", rows.size(), values, bytes_text(bytes));
}

void inspect_model(const Options& options, Json& json) {
  const std::unique_ptr<Engine> engine = open_engine(options, options.device);
  const onnx::Model model = onnx::load(options.model_file.file);
  const onnx::Summary summary = model.summary();
  json.update({{"format", "onnx"},
               {"opset", summary.opset},
               {"producer", summary.producer},
               {"inputs", ports_json(summary.inputs)},
               {"outputs", ports_json(summary.outputs)},
               {"operators", summary.operators}});
  if (!options.json) {
    fmt::print("ONNX, opset {}, by {}\ninputs\n{}outputs\n{}operators\n", summary.opset,
               summary.producer.empty() ? "an unnamed producer" : summary.producer, ports_text(summary.inputs),
               ports_text(summary.outputs));
    for (const auto& [name, count] : summary.operators) fmt::print("  {:>5}  {}\n", count, name);
    fmt::print("tensors\n");
  }
  std::vector<Row> rows;
  for (const auto& entry : model.state())
    rows.push_back({entry.name, std::string(name_of(entry.array.dtype())), entry.array.shape(),
                    static_cast<std::size_t>(entry.array.size()) * bytes_of(entry.array.dtype())});
  print_tensors(rows, options.json, json);
}

void inspect_tensors(const Options& options, Json& json) {
  const io::TensorFile file(options.model_file.file);
  json["format"] = "safetensors";
  if (!options.json) fmt::print("safetensors\n");
  for (const auto& [key, value] : file.metadata()) {
    if (options.json)
      json["metadata"][key] = value;
    else
      fmt::print("  {} = {}\n", key, value.substr(0, 100));
  }
  std::vector<Row> rows;
  for (const io::TensorInfo& info : file.tensors())
    rows.push_back({info.name, std::string(name_of(info.dtype)), info.shape, info.bytes()});
  print_tensors(rows, options.json, json);
}

}  // namespace

int run_inspect(const Options& options) {
  const std::string& path = options.model_file.file;
  std::array<char, 9> start{};
  std::ifstream stream(path, std::ios::binary);
  if (!stream.read(start.data(), start.size()) && !stream.gcount())
    throw IoError(path + ": there is no such file, or it is empty or not to be read", path);
  Json json{{"file", path}};
  if (std::string_view(start.data(), 4) == "GGUF")
    throw UsageError(path + " is a GGUF file, which is not supported; use a safetensors or ONNX file of the model");
  if (path.ends_with(".onnx"))
    inspect_model(options, json);
  else if (start[8] == '{')
    inspect_tensors(options, json);
  else
    throw UsageError(path + " is neither an ONNX model (.onnx) nor a safetensors file, a checkpoint included");
  if (options.json) fmt::print("{}\n", json.dump());
  return kDone;
}

}  // namespace samebytes::cli
