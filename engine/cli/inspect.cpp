// samebytes inspect: what is in a file of a model or of tensors.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "cli/session.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/io/gguf.h"
#include "samebytes/io/safetensors.h"
#include "samebytes/onnx.h"
#include "samebytes/ops.h"
#include "workloads/onnx_file.h"

namespace samebytes::cli {
namespace {

struct TensorRow {
  std::string name, type;
  std::vector<std::int64_t> sizes;
  std::size_t bytes = 0;

  double values() const {
    double count = 1;
    for (const std::int64_t size : sizes) count *= static_cast<double>(size);
    return count;
  }
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

void print_tensors(const std::vector<TensorRow>& rows, bool as_json, Json& json) {
  std::size_t bytes = 0;
  double values = 0;
  TextTable table("lll", 2);
  json["tensors"] = Json::array();
  for (const TensorRow& row : rows) {
    bytes += row.bytes;
    values += row.values();
    table.add({row.name, row.type, fmt::format("[{}]", fmt::join(row.sizes, ", "))});
    if (as_json)
      json["tensors"].push_back({{"name", row.name}, {"type", row.type}, {"shape", row.sizes}, {"bytes", row.bytes}});
  }
  json["values"] = static_cast<std::int64_t>(values);
  json["bytes"] = bytes;
  if (!as_json)
    fmt::print("{}{}, {}, {}\n", table.to_text(), counted_text(static_cast<double>(rows.size()), "tensor"),
               counted_text(values, "value"), bytes_text(bytes));
}

// Of a forward pass, planned and not run.
struct PassCost {
  std::int64_t samples = 0;
  double flops = 0;
  std::size_t parameter_bytes = 0, all_bytes = 0;  // with inputs, outputs and what lies between
};

PassCost cost_of(const Options& options, const onnx::Summary& summary) {
  Options dry = options;
  dry.limit.rehearses = true;
  const std::unique_ptr<Engine> engine = open_engine(dry, options.device);
  const workloads::Symbols symbols = workloads::symbols_of(options.model_file.dims);
  workloads::check_symbols(symbols, summary.inputs);
  onnx::Model model = onnx::load(options.model_file.file, {.any_batch = true});
  PassCost cost{.samples = options.batch.value_or(1)};
  std::map<std::string, onnx::Value> inputs;
  for (const onnx::Port& port : summary.inputs) {
    std::vector<std::int64_t> sizes = workloads::sizes_of(port, symbols, 1);
    if (!port.sizes.empty()) sizes.insert(sizes.begin(), cost.samples);
    inputs[port.name] = workloads::empty_input(port.type, sizes);
  }
  std::vector<Array> cells;
  for (const nn::NamedArray& entry : model.state()) cells.push_back(entry.array);
  eval(cells);
  const double before = engine->plans().flops;
  const NoGrad no_grad;
  const auto outputs = model.run(inputs);
  for (const auto& [name, value] : outputs)
    if (const auto* array = std::get_if<Array>(&value)) array->eval();
  for (const Array& one : cells) cost.parameter_bytes += static_cast<std::size_t>(one.size()) * bytes_of(one.dtype());
  cost.flops = engine->plans().flops - before;
  cost.all_bytes = engine->memory().live_bytes;
  return cost;
}

std::string flops_text(double flops) {
  constexpr std::pair<double, const char*> kUnits[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [unit, letter] : kUnits)
    if (flops >= unit) return fmt::format("{:.3g} {}flop", flops / unit, letter);
  return fmt::format("{:.0f} flop", flops);
}

void inspect_cost(const Options& options, const onnx::Summary& summary, Json& json) {
  std::string why;
  try {
    const PassCost cost = cost_of(options, summary);
    const std::size_t between = cost.all_bytes - std::min(cost.all_bytes, cost.parameter_bytes);
    json["cost"] = {{"samples", cost.samples},
                    {"flops", cost.flops},
                    {"parameter_bytes", cost.parameter_bytes},
                    {"activation_bytes", between},
                    {"bytes", cost.all_bytes}};
    if (!options.json)
      fmt::print("a forward pass of {}: {}, {} of memory: {} parameters, {} inputs, outputs and activations\n",
                 counted_text(static_cast<double>(cost.samples), "sample"), flops_text(cost.flops),
                 bytes_text(cost.all_bytes), bytes_text(cost.parameter_bytes), bytes_text(between));
    return;
  } catch (const workloads::OptionError& error) {
    why = error.what();
  } catch (const Error& error) {
    why = error.what();
  }
  json["cost"] = nullptr;
  json["no_cost"] = why;
  if (!options.json) fmt::print("flops and memory are not known: {}\n", why);
}

std::size_t width_of(onnx::Type type) {
  using onnx::Type;
  switch (type) {
    case Type::none: return 0;
    case Type::u8:
    case Type::i8:
    case Type::boolean: return 1;
    case Type::u16:
    case Type::i16:
    case Type::f16:
    case Type::bf16: return 2;
    case Type::f64:
    case Type::i64:
    case Type::u64: return 8;
    default: return 4;
  }
}

void inspect_model(const Options& options, Json& json) {
  const onnx::Summary summary = onnx::read_summary(options.model_file.file);
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
  std::vector<TensorRow> rows;
  for (const onnx::Port& tensor : summary.tensors) {
    TensorRow row{tensor.name, onnx::name_of(tensor.type), workloads::sizes_of(tensor, {}), 0};
    row.bytes = static_cast<std::size_t>(row.values()) * width_of(tensor.type);
    rows.push_back(std::move(row));
  }
  print_tensors(rows, options.json, json);
  inspect_cost(options, summary, json);
}

void print_metadata(const std::vector<std::pair<std::string, std::string>>& metadata, bool as_json, Json& json) {
  constexpr std::size_t kShown = 100;
  for (const auto& [key, value] : metadata) {
    if (as_json)
      json["metadata"][key] = value;
    else
      fmt::print("  {} = {}{}\n", key, value.substr(0, kShown), value.size() > kShown ? "..." : "");
  }
}

void inspect_tensors(const Options& options, Json& json) {
  const io::TensorFile file(options.model_file.file);
  json["format"] = "safetensors";
  if (!options.json) fmt::print("safetensors\n");
  print_metadata(file.metadata(), options.json, json);
  std::vector<TensorRow> rows;
  for (const io::TensorInfo& info : file.tensors())
    rows.push_back({info.name, std::string(name_of(info.dtype)), {info.shape.begin(), info.shape.end()}, info.bytes()});
  print_tensors(rows, options.json, json);
}

void inspect_gguf(const Options& options, Json& json) {
  const io::GgufHeader header = io::read_gguf_header(options.model_file.file);
  json["format"] = "gguf";
  json["version"] = header.version;
  if (!options.json) fmt::print("GGUF, version {}\n", header.version);
  print_metadata(header.metadata, options.json, json);
  std::vector<TensorRow> rows;
  for (const io::GgufTensor& tensor : header.tensors)
    rows.push_back({tensor.name, tensor.type, tensor.sizes, static_cast<std::size_t>(tensor.bytes)});
  print_tensors(rows, options.json, json);
}

}  // namespace

int run_inspect(const Options& options) {
  const std::string& path = options.model_file.file;
  std::array<char, 9> start{};
  if (std::filesystem::is_directory(path)) throw UsageError(path + " is a folder; expected a file");
  if (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path))  // a pipe would wait for its writer
    throw UsageError(path + " is no regular file; its readers map it");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw IoError(fmt::format("{}: expected a readable file: {}", path, std::strerror(errno)), path);
  stream.read(start.data(), start.size());
  Json json{{"file", path}};
  const bool is_model = path.ends_with(".onnx");
  if (!is_model && (options.batch || !options.model_file.dims.empty()))
    throw UsageError("--batch and --dim are for the flops and the memory of an ONNX model, " + path + " is none");
  if (std::string_view(start.data(), 4) == "GGUF")
    inspect_gguf(options, json);
  else if (is_model)
    inspect_model(options, json);
  else if (start[8] == '{')
    inspect_tensors(options, json);
  else
    throw UsageError(path +
                     " is neither an ONNX model (.onnx) nor a GGUF file nor a safetensors file, a checkpoint "
                     "included");
  if (options.json) print_json(json);
  return kDone;
}

}  // namespace samebytes::cli
