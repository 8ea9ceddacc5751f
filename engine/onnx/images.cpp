// Convolutions. They run channels last; values keep that order until an operator needs another.
#include <algorithm>
#include <limits>

#include "onnx/registry.h"
#include "onnx/windows.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {

Windows windows(const Call& call, std::vector<std::int64_t> kernel) {
  if (call.rank() < 3)
    call.refuse("expected [N, C, ...] with an axis at least, got " + std::to_string(call.rank()) + " axes");
  const std::size_t axes = static_cast<std::size_t>(call.rank()) - 2;
  Windows w;
  w.kernel = call.integers("kernel_shape", std::move(kernel));
  w.stride = call.integers("strides", std::vector<std::int64_t>(axes, 1));
  w.dilation = call.integers("dilations", std::vector<std::int64_t>(axes, 1));
  std::vector<std::int64_t> pads = call.integers("pads", std::vector<std::int64_t>(2 * axes, 0));
  if (w.kernel.size() != axes || w.stride.size() != axes || w.dilation.size() != axes || pads.size() != 2 * axes)
    call.refuse("kernel, strides, dilations and pads do not fit " + std::to_string(axes) + " axes");
  const std::string automatic = call.text("auto_pad", "NOTSET");
  for (std::size_t i = 0; i < axes; ++i) {
    for (const std::int64_t value : {w.kernel[i], w.stride[i], w.dilation[i]})
      if (value < 1 || value > kMostExtent) call.refuse("a window has the size " + std::to_string(value));
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      const std::int64_t size = call.sizes()[i + 2], out = (size + w.stride[i] - 1) / w.stride[i];
      if (size > kMostExtent) call.refuse("an axis has the size " + std::to_string(size));
      const std::int64_t all =
          std::max<std::int64_t>(0, (out - 1) * w.stride[i] + (w.kernel[i] - 1) * w.dilation[i] + 1 - size);
      pads[i] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
      pads[i + axes] = all - pads[i];
    } else if (automatic == "VALID") {
      pads[i] = pads[i + axes] = 0;
    }
    for (const std::int64_t pad : {pads[i], pads[i + axes]}) {
      if (pad < 0) call.refuse("negative pads are not supported");
      if (pad > kMostExtent) call.refuse("a pad of " + std::to_string(pad));
    }
  }
  w.before.assign(pads.begin(), pads.begin() + std::ssize(pads) / 2);
  w.after.assign(pads.begin() + std::ssize(pads) / 2, pads.end());
  return w;
}

Conv1dOptions conv1d_options(const Windows& windows, int groups) {
  const auto& [kernel, s, d, p, e] = windows;
  return {at(s, 0), at(p, 0), at(d, 0), groups, at(e, 0)};
}
Conv2dOptions conv2d_options(const Windows& windows, int groups) {
  const auto& [kernel, s, d, p, e] = windows;
  return {at(s, 0), at(s, 1), at(p, 0), at(p, 1), at(d, 0), at(d, 1), groups, at(e, 0), at(e, 1)};
}

namespace {

int groups_of(const Call& call) {
  const std::int64_t groups = call.integer("group", 1);
  if (groups < 1 || groups > std::numeric_limits<int>::max()) call.refuse("group is " + std::to_string(groups));
  return static_cast<int>(groups);
}

Outputs convolution(const Call& call) {
  if (!call.is_floating() || call.rank() < 3 || call.rank() > 5)
    call.refuse("expected floating [N, C, ...] of 3 to 5 axes");
  const auto rank = static_cast<std::size_t>(call.rank());
  const Sizes of_weight = call.sizes(1);
  if (of_weight.size() != rank) call.refuse("the filter has another rank than the image");
  const Windows w = windows(call, {of_weight.begin() + 2, of_weight.end()});
  const Array x = stored(call.at(0), channels_last(rank));
  const Array weight = stored(call.at(1), taps_first(rank)), bias = call.optional(2);
  const int groups = groups_of(call);
  const auto &s = w.stride, &p = w.before, &e = w.after, &d = w.dilation;
  Array y;
  if (rank == 3) y = conv1d(x, weight, bias, conv1d_options(w, groups));
  if (rank == 4) y = conv2d(x, weight, bias, conv2d_options(w, groups));
  if (rank == 5)
    y = conv3d(x, weight, bias,
               {at(s, 0), at(s, 1), at(s, 2), at(p, 0), at(p, 1), at(p, 2), at(d, 0), at(d, 1), at(d, 2), groups,
                at(e, 0), at(e, 1), at(e, 2)});
  return {ordered(y, channels_last(rank))};
}

// The padding that leaves the given sizes of a transposed convolution, or input times stride where the padding is
// automatic: as even as it can be, the end's being negative where the result would be too small.
void pad_to_shape(const Call& call, Windows& w, const std::vector<std::int64_t>& extra) {
  const std::string automatic = call.text("auto_pad", "NOTSET");
  const bool is_same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  const Sizes wanted = call.integers("output_shape");
  if (wanted.empty() && !is_same) return;
  for (const std::int64_t size : wanted)
    if (size < 0 || size > kMostExtent) call.refuse("output_shape has the size " + std::to_string(size));
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    const std::int64_t in = call.sizes()[i + 2];
    if (in > kMostExtent) call.refuse("an axis has the size " + std::to_string(in));
    if (!wanted.empty() && wanted.size() < w.kernel.size()) call.refuse("output_shape does not fit");
    const std::int64_t out = wanted.empty() ? in * w.stride[i] : wanted[wanted.size() - w.kernel.size() + i];
    const std::int64_t all = (in - 1) * w.stride[i] + extra[i] + (w.kernel[i] - 1) * w.dilation[i] + 1 - out;
    w.before[i] = all < 0 ? 0 : automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
    w.after[i] = all - w.before[i];
  }
}

// [N, ..., C] without w's padding, which the result of a transposed convolution still has.
Array cut(const Call& call, Array y, const Windows& w) {
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    const int axis = static_cast<int>(i) + 1;
    const std::int64_t size = y.shape()[axis];
    if (w.before[i] + w.after[i] >= size) call.refuse("pads leave nothing");
    const std::int64_t end = size - std::max<std::int64_t>(w.after[i], 0);
    if (w.before[i] > 0 || end < size) y = slice(y, axis, w.before[i], end);
    if (w.after[i] >= 0) continue;
    std::vector<PadWidth> widths(static_cast<std::size_t>(y.shape().rank()));
    widths[i + 1].after = -w.after[i];
    y = pad(y, widths);
  }
  return y;
}

// The filter is [C, K / groups, ...]: ours is [..., K / groups, C].
Outputs transposed_convolution(const Call& call) {
  if (!call.is_floating() || call.rank() < 3 || call.rank() > 5)
    call.refuse("expected floating [N, C, ...] of 3 to 5 axes");
  const auto rank = static_cast<std::size_t>(call.rank());
  const Sizes of_weight = call.sizes(1);
  if (of_weight.size() != rank) call.refuse("the filter has another rank than the image");
  Windows w = windows(call, {of_weight.begin() + 2, of_weight.end()});
  const auto extra = call.integers("output_padding", std::vector<std::int64_t>(rank - 2, 0));
  if (extra.size() != rank - 2) call.refuse("output_padding does not fit");
  for (const std::int64_t size : extra)
    if (size < 0 || size > kMostExtent) call.refuse("output_padding has the size " + std::to_string(size));
  pad_to_shape(call, w, extra);
  const int groups = groups_of(call);
  const Array x = stored(call.at(0), channels_last(rank)), weight = stored(call.at(1), taps_first(rank));
  const auto &s = w.stride, &d = w.dilation;
  // Without padding; the sides are cut afterwards, as they may differ. The bias comes last: what a larger result has
  // beyond the sums is the bias, too.
  Array y;
  if (rank == 3) y = conv_transpose1d(x, weight, {}, {at(s, 0), 0, at(extra, 0), at(d, 0), groups});
  if (rank == 4)
    y = conv_transpose2d(x, weight, {},
                         {at(s, 0), at(s, 1), 0, 0, at(extra, 0), at(extra, 1), at(d, 0), at(d, 1), groups});
  if (rank == 5)
    y = conv_transpose3d(x, weight, {},
                         {at(s, 0), at(s, 1), at(s, 2), 0, 0, 0, at(extra, 0), at(extra, 1), at(extra, 2), at(d, 0),
                          at(d, 1), at(d, 2), groups});
  y = cut(call, y, w);
  if (call.has(2)) y = y + call.array(2);
  return {ordered(y, channels_last(rank))};
}

// The convolution of what is sampled at each tap's place plus its offset (Dai et al. 2017), zeros outside.
Outputs deformed_convolution(const Call& call) {
  if (!call.is_floating() || call.rank() != 4) call.refuse("expected floating [N, C, H, W]");
  const Sizes of_weight = call.sizes(1), of_offset = call.sizes(2);
  if (of_weight.size() != 4 || of_offset.size() != 4) call.refuse("expected a filter and offsets of four axes");
  const Windows w = windows(call, {of_weight.begin() + 2, of_weight.end()});
  const Array x = stored(call.at(0), channels_last(4)), weight = stored(call.at(1), taps_first(4));
  const std::int64_t n = x.shape()[0], h = x.shape()[1], width = x.shape()[2], channels = x.shape()[3];
  const std::int64_t taps = w.kernel[0] * w.kernel[1], sets = call.integer("offset_group", 1),
                     groups = call.integer("group", 1), filters = weight.shape()[3];
  if (sets < 1 || sets > std::max<std::int64_t>(channels, 1) || of_offset[1] != count({sets, taps, 2}) ||
      channels % sets != 0 || groups < 1 || groups > std::max<std::int64_t>(channels, 1) || channels % groups != 0 ||
      filters % groups != 0)
    call.refuse("the offsets or groups do not fit the filter");
  const std::int64_t oh = of_offset[2], ow = of_offset[3];
  // [N, sets, taps, (y, x), OH, OW] -> [N, OH, OW, sets, taps, 2]
  const Array offset =
      transpose(reshape(call.array(2), {n, sets, taps, 2, oh, ow}), std::vector<int>{0, 4, 5, 1, 2, 3});
  if (count(call.sizes()) == 0) return {ordered(zeros({n, oh, ow, filters}, x.dtype()), channels_last(4))};
  std::vector<float> base(
      std::size_t(list_count({oh, ow, taps, 2})));  // the place of each tap without an offset, [OH, OW, taps, (y, x)]
  for (std::int64_t i = 0; i < oh * ow * taps; ++i) {
    const std::int64_t tap = i % taps, up = tap / w.kernel[1], column = i / taps % ow, row = i / taps / ow;
    base[std::size_t(2 * i)] = static_cast<float>(row * w.stride[0] - w.before[0] + up * w.dilation[0]);
    base[std::size_t(2 * i + 1)] =
        static_cast<float>(column * w.stride[1] - w.before[1] + tap % w.kernel[1] * w.dilation[1]);
  }
  const Array at = offset + reshape(astype(array(base, {oh, ow, 1, taps, 2}), offset.dtype()), {1, oh, ow, 1, taps, 2});
  const auto part = [&](const Array& a, std::int64_t axis, std::int64_t k) {
    return slice(a, static_cast<int>(axis), k, k + 1);
  };
  // From places to grid_sample's -1 to 1, (x, y).
  const auto to_grid = [](const Array& places, std::int64_t size) {
    return (places * 2.0 + 1.0) / static_cast<double>(size) - 1.0;
  };
  const Array grid = concat({to_grid(part(at, -1, 1), width), to_grid(part(at, -1, 0), h)}, -1);
  std::vector<Array> sampled;
  for (std::int64_t set = 0; set < sets; ++set) {
    const std::int64_t share = channels / sets;
    const Array own = slice(x, 3, set * share, (set + 1) * share);
    Array y = grid_sample(own, reshape(part(grid, 3, set), {n, oh, ow * taps, 2}));
    y = reshape(y, {n, oh, ow, taps, share});
    if (call.has(4)) {
      const Array mask = transpose(reshape(call.array(4), {n, sets, taps, oh, ow}), std::vector<int>{0, 3, 4, 1, 2});
      y = y * unsqueeze(squeeze(part(mask, 3, set), 3), -1);
    }
    sampled.push_back(y);
  }
  const Array columns = sets == 1 ? sampled[0] : concat(sampled, -1);
  std::vector<Array> results;
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t share = channels / groups, out = filters / groups;
    const Array from = reshape(slice(columns, -1, g * share, (g + 1) * share), {n * oh * ow, taps * share});
    results.push_back(matmul(from, reshape(slice(weight, 3, g * out, (g + 1) * out), {taps * share, out})));
  }
  Array y = reshape(groups == 1 ? results[0] : concat(results, -1), {n, oh, ow, filters});
  if (call.has(3)) y = y + call.array(3);
  return {ordered(y, channels_last(4))};
}

}  // namespace

void add_images(Registry& registry) {
  registry.insert({{"Conv", convolution}, {"ConvTranspose", transposed_convolution}});
  registry.insert({{"DeformConv", deformed_convolution}});
}

}  // namespace samebytes::onnx
