// Pooling and what undoes it, channels last.
#include <algorithm>
#include <limits>

#include "onnx/registry.h"
#include "onnx/traced.h"
#include "onnx/windows.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

std::size_t spatial_rank(const Call& call) {
  if (call.rank() < 3 || call.rank() > 5) call.refuse("expected [N, C, ...] of 3 to 5 axes");
  return static_cast<std::size_t>(call.rank());
}

struct PoolFlags {
  bool rounds_up = false, counts_pad = false;
};

Pool1dOptions line_options(const Windows& w, const PoolFlags& f) {
  return {at(w.kernel, 0), at(w.stride, 0),   at(w.before, 0), f.rounds_up,
          f.counts_pad,    at(w.dilation, 0), at(w.after, 0)};
}
Pool2dOptions image_options(const Windows& w, const PoolFlags& f) {
  return {at(w.kernel, 0), at(w.kernel, 1), at(w.stride, 0),   at(w.stride, 1),   at(w.before, 0), at(w.before, 1),
          f.rounds_up,     f.counts_pad,    at(w.dilation, 0), at(w.dilation, 1), at(w.after, 0),  at(w.after, 1)};
}
Pool3dOptions volume_options(const Windows& w, const PoolFlags& f) {
  return {at(w.kernel, 0),   at(w.kernel, 1),   at(w.kernel, 2), at(w.stride, 0), at(w.stride, 1), at(w.stride, 2),
          at(w.before, 0),   at(w.before, 1),   at(w.before, 2), f.rounds_up,     f.counts_pad,    at(w.dilation, 0),
          at(w.dilation, 1), at(w.dilation, 2), at(w.after, 0),  at(w.after, 1),  at(w.after, 2)};
}

Array max_pooled(const Array& x, const Windows& w, const PoolFlags& f) {
  if (w.kernel.size() == 1) return max_pool1d(x, line_options(w, f));
  return w.kernel.size() == 2 ? max_pool2d(x, image_options(w, f)) : max_pool3d(x, volume_options(w, f));
}
PoolResult max_pooled_with_indices(const Array& x, const Windows& w, const PoolFlags& f) {
  if (w.kernel.size() == 1) return max_pool1d_with_indices(x, line_options(w, f));
  return w.kernel.size() == 2 ? max_pool2d_with_indices(x, image_options(w, f))
                              : max_pool3d_with_indices(x, volume_options(w, f));
}
Array avg_pooled(const Array& x, const Windows& w, const PoolFlags& f) {
  if (w.kernel.size() == 1) return avg_pool1d(x, line_options(w, f));
  return w.kernel.size() == 2 ? avg_pool2d(x, image_options(w, f)) : avg_pool3d(x, volume_options(w, f));
}
Array lp_pooled(const Array& x, double p, const Windows& w, const PoolFlags& f) {
  if (w.kernel.size() == 1) return lp_pool1d(x, p, line_options(w, f));
  return w.kernel.size() == 2 ? lp_pool2d(x, p, image_options(w, f)) : lp_pool3d(x, p, volume_options(w, f));
}

// ONNX counts an index over the whole tensor, with storage_order 1 the first spatial axis as the innermost one; ours
// [N, ..., C] counts over the spatial axes.
Item whole_indices(const Call& call, const Array& places) {
  const Sizes sizes = call.sizes();
  if (count(sizes) > std::numeric_limits<std::int32_t>::max()) call.refuse("there are more indices than i32 can count");
  const std::int64_t channels = sizes[1], all = count(sizes) / std::max<std::int64_t>(sizes[0] * channels, 1);
  const bool is_column_major = call.integer("storage_order", 0) != 0;
  check_readable(places);
  std::vector<std::int32_t> index = places.to_vector<std::int32_t>();
  const std::int64_t each = std::ssize(index) / std::max<std::int64_t>(sizes[0], 1);
  for (std::size_t i = 0; i < index.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i);
    std::int64_t place = index[i];
    if (is_column_major) {
      std::int64_t left = place, turned = 0;
      std::vector<std::int64_t> at_axis(sizes.size(), 0);
      for (std::size_t k = sizes.size(); k-- > 2;) {
        at_axis[k] = left % sizes[k];
        left /= sizes[k];
      }
      for (std::size_t k = sizes.size(); k-- > 2;) turned = turned * sizes[k] + at_axis[k];
      place = turned;
    }
    index[i] = static_cast<std::int32_t>((number / each * channels + number % channels) * all + place);
  }
  return ordered(array(std::span<const std::int32_t>(index), places.shape()), channels_last(sizes.size()), Type::i64);
}

Outputs pooling(const Call& call) {
  const std::size_t rank = spatial_rank(call);
  const Windows w = windows(call, {});
  const PoolFlags flags{call.integer("ceil_mode", 0) != 0, call.integer("count_include_pad", 0) != 0};
  const bool is_max = call.op == "MaxPool";
  if (!call.is_floating() && (!is_max || bytes_of(call.type()) != 1)) call.refuse("expected floating values or bytes");
  // A byte is exact in f32.
  const Item source = call.is_floating() ? call.at(0) : item_of(astype(call.array(0), f32));
  const Array x = stored(source, channels_last(rank));
  const auto result = [&](const Array& y) {
    if (call.is_floating()) return ordered(y, channels_last(rank));
    return ordered(astype(y, dtype_of(call.type())), channels_last(rank), call.type());
  };
  if (call.op == "LpPool") return {result(lp_pooled(x, static_cast<double>(call.integer("p", 2)), w, flags))};
  if (!is_max) return {result(avg_pooled(x, w, flags))};
  if (call.outputs < 2) return {result(max_pooled(x, w, flags))};
  const PoolResult pooled = max_pooled_with_indices(x, w, flags);
  return {result(pooled.values), whole_indices(call, pooled.indices)};
}

// The indices count over the size that the windows give; a larger output_shape adds zeros at the ends.
Outputs unpooling(const Call& call) {
  const std::size_t rank = spatial_rank(call);
  if (!call.is_floating()) call.refuse("expected floating values");
  const Windows w = windows(call, {});
  const Sizes sizes = call.sizes();
  if (call.sizes(1) != sizes) call.refuse("expected one index for each value");
  Sizes out(sizes.begin() + 2, sizes.end());
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] < 1) call.refuse("an empty image is not supported");
    out[i] = count({out[i] - 1, w.stride[i]}) + w.kernel[i] - w.before[i] - w.after[i];
    if (out[i] < 1) call.refuse("the pads leave nothing of an axis");
  }
  const std::int64_t places = count(out), all = count({places, sizes[0], sizes[1]});
  if (places > std::numeric_limits<std::int32_t>::max()) call.refuse("there are more places than i32 can count");
  std::vector<std::int64_t> index = ints_of(call.at(1));
  for (std::int64_t& place : index) {
    if (place < 0 || place >= all) call.refuse("the index " + std::to_string(place) + " is outside");
    place %= places;
  }
  const Array x = stored(call.at(0), channels_last(rank)),
              at_places = stored(ints_item(index, sizes, Type::i32), channels_last(rank));
  Array y = rank == 3   ? max_unpool1d(x, at_places, at(out, 0))
            : rank == 4 ? max_unpool2d(x, at_places, at(out, 0), at(out, 1))
                        : max_unpool3d(x, at_places, at(out, 0), at(out, 1), at(out, 2));
  if (call.has(2)) {
    const Sizes wanted = ints_of(call.at(2));
    if (wanted.size() != rank) call.refuse("output_shape does not fit");
    std::vector<PadWidth> widths(rank);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (wanted[i + 2] < out[i]) call.refuse("output_shape is smaller than the windows");
      widths[i + 1].after = wanted[i + 2] - out[i];
    }
    y = pad(y, widths);
  }
  return {ordered(y, channels_last(rank))};
}

Outputs global_pooling(const Call& call) {
  if (!call.is_floating() || call.rank() < 3) call.refuse("expected floating [N, C, ...]");
  const auto rank = static_cast<std::size_t>(call.rank());
  Array y = stored(call.at(0), channels_last(rank));
  std::vector<int> axes;
  for (int axis = 1; axis + 1 < call.rank(); ++axis) axes.push_back(axis);
  if (call.op == "GlobalMaxPool")
    for (const int axis : axes) y = max(y, {axis}, true);
  else {
    double n = 1;
    for (const int axis : axes) n *= static_cast<double>(y.shape()[axis]);
    y = sum(y, std::span<const int>(axes), true) / n;
  }
  return {ordered(y, channels_last(rank))};
}

}  // namespace

void add_pooling(Registry& registry) {
  registry.insert({{"MaxPool", pooling}, {"AveragePool", pooling}, {"LpPool", pooling}, {"MaxUnpool", unpooling}});
  registry.insert({{"GlobalAveragePool", global_pooling}, {"GlobalMaxPool", global_pooling}});
}

}  // namespace samebytes::onnx
