#include "samebytes/io/modules.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
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

// The tensor's values in the array's layout and dtype.
std::vector<std::byte> values_for(const nn::NamedArray& entry, const TensorFile& file, std::size_t index) {
  const TensorInfo& info = file.tensors()[index];
  const Door door = door_of(entry);
  const Dtype dtype = entry.array.dtype();
  if (info.shape != door.file || (info.dtype != dtype && !(is_floating(info.dtype) && is_floating(dtype))))
    detail::throw_io("load", file.path(), -1, "'" + entry.name + "' as " + describe(dtype, door.file),
                     describe(info.dtype, info.shape));
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

void save_state(const std::string& path, std::span<const nn::NamedArray> state, const Metadata& metadata) {
  std::vector<TensorView> tensors;
  std::vector<detail::Borrow> views;             // held until the file is written
  std::deque<std::vector<std::byte>> reordered;  // tensors whose layout in the file differs from that in memory
  for (const nn::NamedArray& entry : state) {
    views.emplace_back(entry.array, false, __FILE__, __LINE__);
    const Door door = door_of(entry);
    std::span<const std::byte> bytes(static_cast<const std::byte*>(views.back().data()), bytes_of_array(entry.array));
    if (!door.axes.empty())
      bytes = reordered.emplace_back(permuted(bytes, door.ours, door.axes, bytes_of(entry.array.dtype())));
    tensors.push_back({entry.name, entry.array.dtype(), door.file, bytes});
  }
  save_tensors(path, tensors, metadata);
}

LoadReport load(const std::string& path, nn::Module& module, const LoadOptions& options) {
  return load_state(TensorFile(path), module.state(), options);
}

LoadReport load_state(const TensorFile& file, std::span<const nn::NamedArray> state, const LoadOptions& options) {
  const std::string& path = file.path();
  LoadReport report;
  std::set<std::string> names;
  for (const nn::NamedArray& entry : state) {
    names.insert(entry.name);
    if (!file.find(entry.name)) report.missing.push_back(entry.name);
  }
  for (const TensorInfo& info : file.tensors())
    if (names.count(info.name) == 0 && !is_left_out(info.name)) report.unexpected.push_back(info.name);
  if (options.strict && !report.missing.empty())
    detail::throw_io("load", path, -1, "a tensor '" + report.missing.front() + "'",
                     report.unexpected.empty() ? "none" : "'" + report.unexpected.front() + "' among others");
  if (options.strict && !report.unexpected.empty())
    detail::throw_io("load", path, -1, "no tensors but the module's", "'" + report.unexpected.front() + "'");

  // Read everything before changing anything.
  std::vector<Array> updates;
  std::unordered_set<const void*> seen;  // a shared parameter has several names
  for (const nn::NamedArray& entry : state) {
    const auto index = file.find(entry.name);
    if (!index || !seen.insert(entry.array.node().get()).second) continue;
    const std::vector<std::byte> bytes = values_for(entry, file, *index);
    if (bytes.empty()) continue;
    const Array values = empty(entry.array.shape(), entry.array.dtype());
    std::memcpy(detail::Borrow(values, true, __FILE__, __LINE__).data(), bytes.data(), bytes.size());
    updates.push_back(update(entry.array, values));
  }
  eval(updates);
  return report;
}

}  // namespace samebytes::io
