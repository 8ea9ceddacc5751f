// samebytes run: an ONNX model on arrays of NumPy.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>

#include "cli/interrupt.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/error.h"
#include "samebytes/io/tensor_npy.h"
#include "samebytes/ops.h"
#include "workloads/onnx_file.h"

namespace samebytes::cli {
namespace {

using Pairs = std::map<std::string, std::string>;

// The words NAME=VALUE of an option.
Pairs pairs_of(const std::vector<std::string>& words, const char* option, const char* form) {
  Pairs pairs;
  for (const std::string& word : words) {
    const std::size_t sign = word.rfind('=');
    if (sign == word.npos || sign == 0 || sign + 1 == word.size())
      throw UsageError(fmt::format("{} {}: expected {}", option, word, form));
    if (!pairs.emplace(word.substr(0, sign), word.substr(sign + 1)).second)
      throw UsageError(fmt::format("{}: {} comes twice", option, word.substr(0, sign)));
  }
  return pairs;
}

std::string shape_text(const std::vector<std::int64_t>& sizes) { return fmt::format("[{}]", fmt::join(sizes, ", ")); }

// Uniform in [0, 1), or zeros for integers, which may be indices.
onnx::Value made_up(const onnx::Port& port, const workloads::Symbols& dims) {
  const std::vector<std::int64_t> sizes = workloads::sizes_of(port, dims);
  const Shape shape{std::span<const std::int64_t>(sizes)};
  switch (port.type) {
    case onnx::Type::f32: return uniform(shape);
    case onnx::Type::f64: return uniform(shape, 0, 1, f64);
    case onnx::Type::f16: return uniform(shape, 0, 1, f16);
    case onnx::Type::bf16: return uniform(shape, 0, 1, bf16);
    case onnx::Type::boolean: return zeros(shape, bool_);
    case onnx::Type::u8: return zeros(shape, u8);
    default: return zeros(shape, i32);
  }
}

void wait(const std::map<std::string, onnx::Value>& outputs) {
  std::vector<Array> arrays;
  for (const auto& [name, value] : outputs)
    if (const auto* array = std::get_if<Array>(&value)) arrays.push_back(*array);
  eval(arrays);
  for (const Array& array : arrays) array.wait();
}

// A file's name for an output: what cannot stand in one becomes _.
std::string file_name(const std::string& output) {
  std::string name = output;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return c < ' ' || c == '/' || c == '\\' || c > '~'; }, '_');
  return (name.empty() || name[0] == '.' ? "_" + name : name) + ".npy";
}

}  // namespace

int run_run(const Options& options) {
  const ModelOptions& asked = options.model_file;
  const Pairs files = pairs_of(asked.inputs, "--input", "NAME=FILE.npy");
  const workloads::Symbols dims = workloads::symbols_of(asked.dims);
  expect_one_device(options, "run");
  const std::unique_ptr<Engine> engine = open_engine(options, options.device);
  onnx::Model model = onnx::load(asked.file);
  const onnx::Summary summary = model.summary();
  workloads::check_symbols(dims, summary.inputs);
  for (const auto& [name, file] : files)
    if (std::find(model.inputs().begin(), model.inputs().end(), name) == model.inputs().end())
      throw UsageError(fmt::format("--input {}: the model has {}", name,
                                   model.inputs().empty() ? "no inputs" : "the inputs " + list_text(model.inputs())));
  std::map<std::string, onnx::Value> inputs;
  for (const onnx::Port& port : summary.inputs) {
    const auto file = files.find(port.name);
    if (file == files.end() && !asked.random)
      throw UsageError(
          fmt::format("input {} is missing: {} [{}]; give --input {}=FILE.npy, or --random for all that are", port.name,
                      onnx::name_of(port.type), fmt::join(port.sizes, ", "), port.name));
    inputs[port.name] = file == files.end() ? made_up(port, dims) : io::value_of(io::read_tensor_npy(file->second));
  }
  const NoGrad no_grad;
  std::vector<double> seconds;
  std::map<std::string, onnx::Value> outputs;
  // The first run also sets the parameters up, the third one is recorded, and what follows from weights alone is
  // computed once before it (graph/recordings.h); --explain shows the plan of those that follow, which is run again.
  constexpr std::int64_t kUntilRepeated = 4;
  const std::int64_t repeats = std::max<std::int64_t>(asked.repeat, options.devices.explain ? kUntilRepeated : 0);
  for (std::int64_t i = 0; i <= repeats && (i == 0 || !is_interrupted()); ++i) {
    const auto start = std::chrono::steady_clock::now();
    outputs = model.run(inputs);
    wait(outputs);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  print_plan(options, *engine);
  if (!asked.output.empty()) std::filesystem::create_directories(asked.output);
  Json json{{"model", asked.file}, {"outputs", Json::array()}};
  for (const std::string& name : model.outputs()) {
    const onnx::Tensor tensor = io::tensor_of(outputs.at(name));
    std::string file;
    if (!asked.output.empty())
      io::write_tensor_npy(file = (std::filesystem::path(asked.output) / file_name(name)).string(), tensor);
    if (options.json)
      json["outputs"].push_back(
          {{"name", name}, {"type", onnx::name_of(tensor.type)}, {"shape", tensor.sizes}, {"file", file}});
    else
      fmt::print("{}  {} {}{}\n", name, onnx::name_of(tensor.type), shape_text(tensor.sizes),
                 file.empty() ? "" : "  -> " + file);
  }
  const double first = seconds.front();
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  if (options.json) {
    json["first_seconds"] = first;
    json["median_seconds"] = median;
    json["runs"] = seconds.size();
    print_json(json);
  } else {
    fmt::print("{}: first run {:.1f} ms, with the kernels that it builds", device_text(*engine), first * 1e3);
    if (asked.repeat > 0) fmt::print("; median of {} runs {:.2f} ms", seconds.size(), median * 1e3);
    fmt::print("\n");
  }
  return is_interrupted() ? kInterrupted : kDone;
}

}  // namespace samebytes::cli
