#include "samebytes/io/convert_file.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>

#include "core/io_error.h"
#include "core/json.h"
#include "io/convert.h"
#include "io/state.h"
#include "samebytes/io/modules.h"
#include "samebytes/memory.h"
#include "samebytes/onnx.h"
#include "samebytes/run_state.h"

namespace samebytes::io {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kReader = "convert";
constexpr const char* kUsualPart = "model";  // of train::Session

std::string text_of(const TensorFile& file, const std::string& key) {
  for (const auto& [name, value] : file.metadata())
    if (name == key) return value;
  return {};
}

bool is_checkpoint(const TensorFile& file) { return text_of(file, "format").starts_with("samebytes run"); }

Conversion counted(std::span<const nn::NamedArray> state) {
  Conversion result{.tensors = state.size()};
  for (const nn::NamedArray& entry : state) result.values += static_cast<std::size_t>(entry.array.size());
  return result;
}

// The name of the network among the parts of a checkpoint, which are those with layouts.
std::string part_of(const Json& layouts, const std::string& path, const std::string& asked) {
  std::string names;
  for (const auto& [name, unused] : layouts.items()) names += (names.empty() ? "" : ", ") + name;
  if (names.empty())
    detail::throw_io(kReader, path, -1, "a checkpoint that says how its weights lie",
                     "one of an older version; resume the run and save");
  std::string part = !asked.empty() ? asked : layouts.size() == 1 ? layouts.begin().key() : kUsualPart;
  if (!layouts.contains(part))
    throw ArgumentError("convert: " + path + " has no network '" + part + "', it has " + names);
  return part;
}

// What a layout says about the axes must be true, since the values are moved by it.
void set_layout(nn::NamedArray& entry, const Json& layout, const std::string& path) {
  const auto kind = layout.at(0).get<std::int64_t>();
  constexpr auto kLast = static_cast<std::int64_t>(nn::Layout::conv_transpose);
  entry.layout = static_cast<nn::Layout>(std::clamp<std::int64_t>(kind, 0, kLast));
  entry.flattened_channels = layout.at(1).get<std::int64_t>();
  const int rank = entry.array.shape().rank();
  const bool is_linear = entry.layout == nn::Layout::linear || entry.layout == nn::Layout::linear_transposed;
  if (kind < 0 || kind > kLast || (is_linear && rank != 2) || (entry.layout != nn::Layout::plain && rank < 2))
    detail::throw_io(kReader, path, -1, "a layout that fits '" + entry.name + "' " + entry.array.shape().to_string(),
                     detail::to_line(layout).substr(0, 60));
}

std::vector<nn::NamedArray> weights_in(const TensorFile& file, const std::string& asked) {
  const auto description = detail::parse_json<Json>(kReader, file.path(), text_of(file, "description"));
  const Json layouts = description.value("layouts", Json::object());
  const std::string part = part_of(layouts, file.path(), asked);
  std::vector<nn::NamedArray> state;
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const TensorInfo& info = file.tensors()[i];
    if (!info.name.starts_with(part + "/")) continue;
    nn::NamedArray entry{.name = info.name.substr(part.size() + 1), .array = empty(info.shape, info.dtype)};
    if (const auto at = layouts[part].find(entry.name); at != layouts[part].end()) set_layout(entry, *at, file.path());
    if (info.bytes() > 0) {
      const detail::Borrow view(entry.array, true, __FILE__, __LINE__);
      file.read(i, {static_cast<std::byte*>(view.data()), info.bytes()});
    }
    state.push_back(std::move(entry));
  }
  return state;
}

Conversion from_checkpoint(const TensorFile& file, const std::string& to, const ConvertOptions& options) {
  check_run_file(file.path());
  const std::vector<nn::NamedArray> state =
      detail::reading_json(kReader, file.path(), [&] { return weights_in(file, options.part); });
  save_state(to, state, {{"format", "pt"}}, options.dtype);
  Conversion result = counted(state);
  result.left_out = file.tensors().size() - state.size();
  return result;
}

Conversion from_tensors(const TensorFile& file, const std::string& to, const ConvertOptions& options) {
  if (!options.dtype)
    throw ArgumentError(
        "convert: " + file.path() +
        " is a safetensors file already; say which dtype its copy has (ConvertOptions::dtype, --dtype)");
  std::vector<TensorView> tensors;
  std::deque<std::vector<std::byte>> values;
  Conversion result;
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const TensorInfo& info = file.tensors()[i];
    values.push_back(file.read(i).bytes);
    const Dtype dtype = is_floating(info.dtype) ? *options.dtype : info.dtype;
    if (dtype != info.dtype) values.back() = converted(values.back(), info.dtype, dtype);
    tensors.push_back({info.name, dtype, info.shape, values.back()});
    ++result.tensors;
    result.values += static_cast<std::size_t>(info.shape.size());
  }
  save_tensors(to, tensors, file.metadata());
  return result;
}

Conversion to_onnx(const TensorFile& file, const std::string& to, const ConvertOptions& options) {
  if (options.graph.empty())
    throw ArgumentError(
        "convert: " + file.path() +
        " has weights and no graph; say which ONNX model they are of (ConvertOptions::graph, --graph), whose graph " +
        to + " gets");
  if (options.dtype)
    throw ArgumentError("convert: an ONNX model keeps the dtypes of its graph, so there is none to say");
  if (is_checkpoint(file))
    throw ArgumentError("convert: " + file.path() + " is a checkpoint; convert it to a safetensors file first");
  onnx::Model model = onnx::load(options.graph);
  io::load(file.path(), model);
  onnx::save(to, model);
  return counted(model.state());
}

}  // namespace

Conversion convert_file(const std::string& from, const std::string& to, const ConvertOptions& options) {
  const bool is_model = from.ends_with(".onnx"), makes_model = to.ends_with(".onnx");
  if (!makes_model && !to.ends_with(".safetensors"))
    throw ArgumentError("convert: expected a new file that ends in .safetensors or .onnx, got " + to);
  if (options.dtype && !is_floating(*options.dtype))
    throw ArgumentError("convert: expected a floating dtype, got " + std::string(name_of(*options.dtype)));
  if (!makes_model && !options.graph.empty())
    throw ArgumentError("convert: only an ONNX model has a graph, " + to + " is for weights");
  if (is_model && makes_model) throw ArgumentError("convert: " + from + " and " + to + " are both ONNX models");
  if (is_model) {
    const onnx::Model model = onnx::load(from);
    save_state(to, model.state(), {{"format", "pt"}}, options.dtype);
    return counted(model.state());
  }
  const TensorFile file(from);
  if (!options.part.empty() && !is_checkpoint(file))
    throw ArgumentError("convert: only a checkpoint has parts, " + from + " is none");
  if (makes_model) return to_onnx(file, to, options);
  return is_checkpoint(file) ? from_checkpoint(file, to, options) : from_tensors(file, to, options);
}

}  // namespace samebytes::io
