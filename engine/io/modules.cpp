#include "samebytes/io/modules.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <unordered_set>
#include <utility>

#include "core/io_error.h"
#include "io/convert.h"
#include "io/state.h"

namespace samebytes::io {
namespace {

// The form of an entry of a module's state in a file: the array viewed with the sizes `ours`, its axes in PyTorch's
// order.
struct Door {
  Shape ours;             // the array's shape, possibly with columns split into (position, channel)
  std::vector<int> axes;  // axis i in the file is axis axes[i] of `ours`; empty: the same order
  Shape file;             // the shape in the file
};

Door door_of(const nn::NamedArray& entry) {
  const Shape& shape = entry.array.shape();
  if (entry.layout == nn::Layout::conv || entry.layout == nn::Layout::conv_transpose) {
    // [taps..., in / groups, out] to [out, in / groups, taps...]; a transposed one's [taps..., out / groups, in]
    // likewise.
    const int taps = shape.rank() - 2;
    Door door{shape, {taps + 1, taps}, {}};
    for (int axis = 0; axis < taps; ++axis) door.axes.push_back(axis);
    for (const int axis : door.axes) door.file.push_back(shape[axis]);
    return door;
  }
  if (entry.layout == nn::Layout::linear_transposed) return {shape, {1, 0}, Shape{shape[1], shape[0]}};
  const std::int64_t channels = entry.flattened_channels;
  if (entry.layout == nn::Layout::linear && channels > 1 && shape[1] % channels == 0 && shape[1] > channels)
    return {Shape{shape[0], shape[1] / channels, channels}, {0, 2, 1}, shape};
  return {shape, {}, shape};
}

std::size_t bytes_of_array(const Array& array) {
  return static_cast<std::size_t>(array.size()) * bytes_of(array.dtype());
}

// Entries of PyTorch's modules that are not needed here: the step counts of batch norms, the causal masks of GPT-2.
bool is_left_out(const std::string& name) {
  constexpr std::string_view kEnds[] = {"num_batches_tracked", ".attn.bias", ".attn.masked_bias"};
  return std::any_of(std::begin(kEnds), std::end(kEnds), [&](std::string_view end) {
    return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
  });
}

std::string describe(Dtype dtype, const Shape& shape) { return std::string(name_of(dtype)) + " " + shape.to_string(); }

bool fits(const nn::NamedArray& entry, const TensorInfo& info) {
  const Dtype dtype = entry.array.dtype();
  return info.shape == door_of(entry).file && (info.dtype == dtype || (is_floating(info.dtype) && is_floating(dtype)));
}

std::regex pattern_of(const std::string& text) {
  try {
    return std::regex(text);
  } catch (const std::regex_error& error) {
    throw ArgumentError("load: pattern \"" + text + "\" is no regular expression: " + error.what());
  }
}

// The standard library's regular expressions call themselves for every character: a file with a name of some ten
// thousand would end the process. Up to here the stack of a thread is enough.
constexpr std::size_t kMostToMatch = 1024;

const std::string& to_match(const TensorFile& file, const std::string& name) {
  if (name.size() > kMostToMatch)
    detail::throw_io("load", file.path(), -1,
                     "names of at most " + std::to_string(kMostToMatch) + " bytes where patterns skip or rename",
                     std::to_string(name.size()) + " bytes that begin '" + name.substr(0, 40) + "'");
  return name;
}

// The tensors of a file by the names that they have in the module.
struct Renamed {
  std::map<std::string, std::size_t> tensors;
  std::vector<std::string> skipped;
};

Renamed renamed(const TensorFile& file, const std::string& prefix, const LoadOptions& options) {
  std::vector<std::regex> skip;
  for (const std::string& pattern : options.skip) skip.push_back(pattern_of(pattern));
  std::vector<std::pair<std::regex, std::string>> rename;
  for (const auto& [pattern, text] : options.rename) rename.emplace_back(pattern_of(pattern), text);
  Renamed result;
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const std::string& in_file = file.tensors()[i].name;
    const bool is_skipped = std::any_of(
        skip.begin(), skip.end(), [&](const std::regex& r) { return std::regex_search(to_match(file, in_file), r); });
    if (is_skipped || in_file.compare(0, prefix.size(), prefix) != 0) {
      result.skipped.push_back(in_file);
      continue;
    }
    std::string name = in_file.substr(prefix.size());
    for (const auto& [pattern, text] : rename) name = std::regex_replace(to_match(file, name), pattern, text);
    const auto [at, is_new] = result.tensors.emplace(name, i);
    if (!is_new)
      throw ArgumentError("load: two tensors of " + file.path() + " become '" + name + "': '" +
                          file.tensors()[at->second].name + "' and '" + in_file + "'; change rename or skip one");
  }
  return result;
}

constexpr const char* kHead = "lm_head.weight";
constexpr const char* kEmbedding = "wte.weight";

// The same with what published files of transformers need: a prefix of their own, a head that is the embedding.
Renamed understood(const TensorFile& file, const std::set<std::string>& names, const LoadOptions& options) {
  Renamed result = renamed(file, options.prefix, options);
  const auto any_fits = [&](const Renamed& r) {
    return std::any_of(r.tensors.begin(), r.tensors.end(), [&](const auto& t) { return names.count(t.first) != 0; });
  };
  if (options.prefix.empty() && !any_fits(result)) {
    constexpr const char* kPrefix = "transformer.";
    LoadOptions stripped = options;
    stripped.rename.insert(stripped.rename.begin(), {"^transformer\\.", ""});
    const bool has_prefix = std::any_of(file.tensors().begin(), file.tensors().end(),
                                        [&](const TensorInfo& info) { return info.name.rfind(kPrefix, 0) == 0; });
    if (has_prefix)
      if (Renamed other = renamed(file, "", stripped); any_fits(other)) result = std::move(other);
  }
  const auto head = result.tensors.find(kHead);
  if (head == result.tensors.end() || names.count(kHead) != 0 || names.count(kEmbedding) == 0) return result;
  const auto [embedding, is_missing] = result.tensors.try_emplace(kEmbedding, head->second);
  const std::vector<TensorInfo>& tensors = file.tensors();
  if (tensors[embedding->second].shape == tensors[head->second].shape) result.tensors.erase(kHead);
  return result;
}

// The tensor's values in the array's layout and dtype.
std::vector<std::byte> values_for(const nn::NamedArray& entry, const TensorFile& file, std::size_t index) {
  const TensorInfo& info = file.tensors()[index];
  const Door door = door_of(entry);
  const Dtype dtype = entry.array.dtype();
  std::vector<std::byte> bytes(info.bytes());
  file.read(index, bytes);
  if (!door.axes.empty()) {
    std::vector<int> inverse(door.axes.size());
    std::vector<std::int64_t> sizes(door.axes.size());
    for (std::size_t i = 0; i < inverse.size(); ++i) {
      inverse[static_cast<std::size_t>(door.axes[i])] = static_cast<int>(i);
      sizes[i] = door.ours[door.axes[i]];
    }
    bytes = permuted(bytes, Shape(sizes), inverse, bytes_of(info.dtype));
  }
  return info.dtype == dtype ? bytes : converted(bytes, info.dtype, dtype);
}

}  // namespace

void save(const std::string& path, const nn::Module& module, const Metadata& metadata) {
  save_state(path, module.state(), metadata);
}

void save_state(const std::string& path, std::span<const nn::NamedArray> state, const Metadata& metadata,
                std::optional<Dtype> dtype) {
  std::vector<TensorView> tensors;
  std::vector<detail::Borrow> views;             // held until the file is written
  std::deque<std::vector<std::byte>> reordered;  // tensors whose layout in the file differs from that in memory
  for (const nn::NamedArray& entry : state) {
    views.emplace_back(entry.array, false, __FILE__, __LINE__);
    const Door door = door_of(entry);
    std::span<const std::byte> bytes(static_cast<const std::byte*>(views.back().data()), bytes_of_array(entry.array));
    if (!door.axes.empty())
      bytes = reordered.emplace_back(permuted(bytes, door.ours, door.axes, bytes_of(entry.array.dtype())));
    const Dtype own = entry.array.dtype(), kept = dtype && is_floating(own) ? *dtype : own;
    if (kept != own) bytes = reordered.emplace_back(converted(bytes, own, kept));
    tensors.push_back({entry.name, kept, door.file, bytes});
  }
  save_tensors(path, tensors, metadata);
}

std::string LoadReport::to_string() const {
  std::string text = std::to_string(loaded) + " loaded, " + std::to_string(missing.size()) + " missing, " +
                     std::to_string(unexpected.size()) + " unexpected, " + std::to_string(mismatched.size()) +
                     " mismatched, " + std::to_string(skipped.size()) + " skipped\n";
  std::size_t width = 0;
  for (const Mismatch& entry : mismatched) width = std::max(width, entry.name.size());
  for (const auto* names : {&missing, &unexpected})
    for (const std::string& name : *names) width = std::max(width, name.size());
  const auto row = [&](const std::string& name, const std::string& what) {
    text += "  " + name + std::string(width - name.size() + 2, ' ') + what + "\n";
  };
  for (const std::string& name : missing) row(name, "missing: not in the file, keeps its values");
  for (const std::string& name : unexpected) row(name, "unexpected: not in the module, ignored");
  for (const Mismatch& entry : mismatched)
    row(entry.name, "mismatched: the module has " + entry.expected + ", the file " + entry.found);
  return text;
}

LoadReport load(const std::string& path, nn::Module& module, const LoadOptions& options) {
  return load_state(TensorFile(path), module.state(), options);
}

LoadReport load_state(const TensorFile& file, std::span<const nn::NamedArray> state, const LoadOptions& options) {
  const std::string& path = file.path();
  LoadReport report;
  std::set<std::string> names;
  for (const nn::NamedArray& entry : state) names.insert(entry.name);
  Renamed in_file = understood(file, names, options);
  report.skipped = std::move(in_file.skipped);
  for (const nn::NamedArray& entry : state)
    if (in_file.tensors.count(entry.name) == 0) report.missing.push_back(entry.name);
  for (const TensorInfo& info : file.tensors())  // in the order of the file
    for (const auto& [name, index] : in_file.tensors)
      if (&file.tensors()[index] == &info && names.count(name) == 0 && !is_left_out(name))
        report.unexpected.push_back(name);
  if (options.strict && !report.missing.empty())
    detail::throw_io("load", path, -1, "a tensor '" + report.missing.front() + "'",
                     report.unexpected.empty() ? "none" : "'" + report.unexpected.front() + "' among others");
  if (options.strict && !report.unexpected.empty())
    detail::throw_io("load", path, -1, "no tensors but the module's", "'" + report.unexpected.front() + "'");

  // Read everything before changing anything.
  std::vector<Array> updates;
  std::unordered_set<const void*> seen;  // a shared parameter has several names
  for (const nn::NamedArray& entry : state) {
    const auto found = in_file.tensors.find(entry.name);
    if (found == in_file.tensors.end()) continue;
    const TensorInfo& info = file.tensors()[found->second];
    if (!fits(entry, info)) {
      const std::string expected = describe(entry.array.dtype(), door_of(entry).file);
      const std::string came = describe(info.dtype, info.shape);
      if (options.strict) detail::throw_io("load", path, -1, "'" + entry.name + "' as " + expected, came);
      report.mismatched.push_back({entry.name, expected, came});
      continue;
    }
    ++report.loaded;
    if (!seen.insert(entry.array.node().get()).second) continue;
    const std::vector<std::byte> bytes = values_for(entry, file, found->second);
    if (bytes.empty()) continue;
    const Array values = empty(entry.array.shape(), entry.array.dtype());
    std::memcpy(detail::Borrow(values, true, __FILE__, __LINE__).data(), bytes.data(), bytes.size());
    updates.push_back(update(entry.array, values));
  }
  eval(updates);
  return report;
}

}  // namespace samebytes::io
