// onnx_network_runner [--seconds S] DIR...: runs DIR/model.onnx with the values of DIR/given.pb, an ONNX graph of which
// only the initializers count: those named as an input are the inputs; "cotangent NAME" asks for the gradients of the
// sum of output NAME times it; those named "other NAME" play no part here. Writes DIR/results.pb of the same kind
// (outputs by their names, "gradient NAME" for each parameter) and DIR/saved.onnx, what onnx::save makes of the model.
// Prints one line of JSON for each DIR. benchmarks/onnx_networks.py and onnx_ocr.py call it.
// onnx_network_runner --open FILE: reads a model seven times and prints the seconds of the first time and the median of
// the others, the bytes that were copied or allocated, and those that the process has touched, for onnx_open.py.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "onnx/call.h"
#include "onnx/graph_writer.h"
#include "samebytes/autograd.h"
#include "samebytes/engine.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

namespace fs = std::filesystem;
using Values = std::map<std::string, Value>;
using Json = nlohmann::json;

Values read(const fs::path& path) {
  ::onnx::GraphProto graph;
  std::ifstream in(path, std::ios::binary);
  if (!graph.ParseFromIstream(&in)) throw IoError("cannot read " + path.string(), path.string());
  Values values;
  for (const auto& proto : graph.initializer()) {
    Tensor tensor = tensor_of(proto);
    if (is_floating(tensor.type))
      values[proto.name()] = plain(item_of(std::move(tensor)));
    else
      values[proto.name()] = std::move(tensor);
  }
  return values;
}

Tensor tensor_of_value(const Value& value) {
  const auto* array = std::get_if<Array>(&value);
  return array == nullptr ? std::get<Tensor>(value) : on_host(item_of(*array));
}

void put(::onnx::GraphProto& graph, const std::string& name, const Tensor& tensor) {
  *graph.add_initializer() = proto_of(tensor);
  graph.mutable_initializer(graph.initializer_size() - 1)->set_name(name);
}

// The gradients of the loss that the cotangents make, in the file's order of axes.
void differentiate(Model& model, const Values& inputs, const Values& given, ::onnx::GraphProto& results) {
  Array loss;
  const Values outputs = model.run(inputs);
  for (const auto& [name, value] : outputs) {
    const auto cotangent = given.find("cotangent " + name);
    if (cotangent == given.end()) continue;
    const Array part = sum(std::get<Array>(value) * std::get<Array>(cotangent->second));
    loss = loss.defined() ? loss + part : part;
  }
  if (!loss.defined()) return;
  const auto parameters = model.named_parameters();
  std::vector<Array> wrt;
  for (const auto& parameter : parameters) wrt.push_back(parameter.array);
  const auto made = gradients(loss, wrt, {.allow_unused = true});
  eval(made);  // in one plan, as a step of training has them
  for (std::size_t i = 0; i < made.size(); ++i) {
    Item item = item_of(made[i]);
    if (parameters[i].layout == nn::Layout::conv)
      item = ordered(made[i], taps_first(static_cast<std::size_t>(made[i].shape().rank())));
    put(results, "gradient " + parameters[i].name, on_host(item));
  }
}

// Integers are passed as arrays of i32, so that the traced graph reads them.
void write_again(Model& model, const Values& inputs, const fs::path& path) {
  std::vector<Array> examples;
  SaveOptions options{model.inputs(), model.outputs(), false};
  for (const std::string& name : model.inputs()) {
    const Value& value = inputs.at(name);
    const auto* array = std::get_if<Array>(&value);
    examples.push_back(array == nullptr ? plain(item_of(std::get<Tensor>(value))) : *array);
  }
  const Traced traced = [&](std::span<const Array> arrays) {
    Values values;
    for (std::size_t i = 0; i < arrays.size(); ++i) values[options.inputs[i]] = arrays[i];
    const Values outputs = model.run(values);
    std::vector<Array> made;
    for (const std::string& name : options.outputs) {
      const Value& value = outputs.at(name);
      const auto* array = std::get_if<Array>(&value);
      made.push_back(array == nullptr ? plain(item_of(std::get<Tensor>(value))) : *array);
    }
    return made;
  };
  save(path.string(), traced, examples, model.state(), options);
}

// Seconds of one inference, its outputs read on the host, of as many as the time allows, ascending.
std::vector<double> seconds_of(Model& model, const Values& inputs, double most) {
  const NoGrad no_grad;
  const auto now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()); };
  std::vector<double> all;
  const auto begin = now();
  while (all.size() < 5 || (now() - begin).count() < most) {
    const auto start = now();
    for (const auto& [name, value] : model.run(inputs)) tensor_of_value(value);
    if (const double took = (now() - start).count(); (now() - begin).count() > most / 5 || all.empty())
      all.push_back(took);
  }
  std::sort(all.begin(), all.end());
  return all;
}

// Kilobytes that the process has touched.
std::int64_t resident() {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;)
    if (std::int64_t value = 0; word == "VmRSS:" && in >> value) return value;
  return 0;
}

Json opened(const std::string& path) {
  const Engine engine;
  const auto copied = engine.transfers().bytes_copied;
  const std::int64_t before = resident();
  std::vector<double> all;
  Json line;
  for (int i = 0; i < 7; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const Model model = load(path);
    all.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    line["touched"] = (resident() - before) * 1024;
    line["allocated"] = engine.memory().live_bytes;
  }
  line["first"] = all[0];
  std::sort(all.begin() + 1, all.end());
  line["seconds"] = all[4];
  line["copied"] = engine.transfers().bytes_copied - copied;
  return line;
}

Json checked(const fs::path& folder, double seconds) {
  Json line{{"folder", folder.string()}};
  ::onnx::GraphProto results;
  try {
    const Engine engine;
    Model model = load((folder / "model.onnx").string());
    const Values given = read(folder / "given.pb");
    Values inputs;
    for (const std::string& name : model.inputs()) inputs[name] = given.at(name);
    {
      const NoGrad no_grad;
      for (int run = 0; run < 2; ++run) model.run(inputs);  // the third builds what the second recorded
      for (const auto& [name, value] : model.run(inputs)) put(results, name, tensor_of_value(value));
    }
    line["outputs"] = true;
    if (seconds > 0) {
      const std::vector<double> all = seconds_of(model, inputs, seconds);
      line["seconds"] = all[all.size() / 2];
      line["p99"] = all[all.size() * 99 / 100];
    } else {
      differentiate(model, inputs, given, results);
      line["gradients"] = true;
      write_again(model, inputs, folder / "saved.onnx");
      line["saved"] = true;
    }
  } catch (const std::exception& error) {
    line["error"] = error.what();
  }
  std::ofstream out(folder / "results.pb", std::ios::binary);
  results.SerializeToOstream(&out);
  return line;
}

}  // namespace
}  // namespace samebytes::onnx

int main(int count, char** words) {
  double seconds = 0;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--seconds" && i + 1 < count)
      seconds = std::stod(words[++i]);
    else if (word == "--open" && i + 1 < count)
      std::cout << samebytes::onnx::opened(words[++i]).dump() << std::endl;
    else
      std::cout << samebytes::onnx::checked(word, seconds).dump() << std::endl;
  }
  return 0;
}
