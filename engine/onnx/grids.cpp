// Images read at places between their elements, and windows put back together, channels last.
#include <algorithm>

#include "onnx/registry.h"
#include "onnx/windows.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

Outputs sampled(const Call& call) {
  if (!call.is_floating() || call.rank() < 4 || call.rank() > 5)
    call.refuse("expected floating [N, C, ...] of 4 or 5 axes");
  const std::string mode = call.text("mode", "linear"), padding = call.text("padding_mode", "zeros");
  GridSampleOptions options{.align_corners = call.integer("align_corners", 0) != 0};
  if (mode == "nearest")
    options.mode = GridSampleMode::nearest;
  else if (mode == "cubic" || mode == "bicubic")
    options.mode = GridSampleMode::bicubic;
  else if (mode != "linear" && mode != "bilinear")
    call.refuse("the mode " + mode + " is not supported");
  if (padding == "border")
    options.padding = GridSamplePadding::border;
  else if (padding == "reflection")
    options.padding = GridSamplePadding::reflection;
  else if (padding != "zeros")
    call.refuse("the padding " + padding + " is not supported");
  const Order order = channels_last(static_cast<std::size_t>(call.rank()));
  return {ordered(grid_sample(stored(call.at(0), order), call.floating(1), options), order)};
}

Outputs affine(const Call& call) {
  const Sizes size = ints_of(call.at(1));
  if (size.size() < 4 || size.size() > 5) call.refuse("expected the sizes of [N, C, ...] with 4 or 5 axes");
  list_count({size.begin() + 2, size.end()});
  return {item_of(affine_grid(call.floating(0), {size.begin() + 2, size.end()},
                              {.align_corners = call.integer("align_corners", 0) != 0}))};
}

Outputs aligned_regions(const Call& call) {
  if (!call.is_floating() || call.rank() != 4) call.refuse("expected floating [N, C, H, W]");
  const std::string mode = call.text("mode", "avg"),
                    pixels = call.text("coordinate_transformation_mode", call.opset < 16 ? "" : "half_pixel");
  if (mode != "avg" && mode != "max") call.refuse("the mode " + mode + " is not supported");
  const auto number = [&](const char* key, int least, int most) {
    const std::int64_t asked = call.integer(key, least);
    if (asked < least || asked > most)
      call.refuse(std::string(key) + " is " + std::to_string(asked) + ", expected " + std::to_string(least) + " to " +
                  std::to_string(most));
    return static_cast<int>(asked);
  };
  constexpr int kMostBins = 1 << 15, kMostSamples = 4096;  // along an axis
  const RoiAlignOptions options{.out_h = number("output_height", 1, kMostBins),
                                .out_w = number("output_width", 1, kMostBins),
                                .spatial_scale = call.real("spatial_scale", 1.0),
                                .sampling_ratio = number("sampling_ratio", 0, kMostSamples),
                                .aligned = pixels == "half_pixel",
                                .mode = mode == "avg" ? RoiAlignMode::mean : RoiAlignMode::max};
  const int samples = std::max(options.sampling_ratio, 1);
  list_count({call.sizes(1).at(0), options.out_h, options.out_w, samples, samples});
  const Order order = channels_last(4);
  return {ordered(roi_align(stored(call.at(0), order), call.floating(1), call.array(2), options), order)};
}

Outputs folded(const Call& call) {
  if (!call.is_floating() || call.rank() != 3) call.refuse("expected floating [N, C * places, L]");
  const Sizes sizes = call.sizes(), image = ints_of(call.at(1)), block = ints_of(call.at(2));
  const std::size_t axes = image.size();
  const auto ints = [](const Sizes& list, std::size_t first, std::size_t n) {
    return std::vector<int>(list.begin() + std::ptrdiff_t(first), list.begin() + std::ptrdiff_t(first + n));
  };
  const Sizes pads = call.integers("pads", Sizes(2 * axes, 0)), strides = call.integers("strides", Sizes(axes, 1)),
              dilations = call.integers("dilations", Sizes(axes, 1));
  const std::int64_t places = count(block);
  if (block.size() != axes || pads.size() != 2 * axes || strides.size() != axes || dilations.size() != axes ||
      places < 1 || sizes[1] % places != 0)
    call.refuse("image_shape, block_shape and the attributes do not fit");
  const auto expect = [&](const char* what, const Sizes& list, std::int64_t least) {
    for (const std::int64_t value : list)
      if (value < least || value > kMostExtent) call.refuse(std::string(what) + " has " + std::to_string(value));
  };
  expect("image_shape", image, 1);
  expect("block_shape", block, 1);
  expect("strides", strides, 1);
  expect("dilations", dilations, 1);
  expect("pads", pads, 0);
  Sizes across;  // windows along each axis
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t room = image[i] + pads[i] + pads[i + axes] - dilations[i] * (block[i] - 1) - 1;
    across.push_back(room < 0 ? 0 : room / strides[i] + 1);
    list_count({image[i], block[i]});
  }
  if (count(across) != sizes[2])
    call.refuse("it has " + std::to_string(sizes[2]) + " windows, expected " + std::to_string(count(across)));
  const Array columns =
      transpose(reshape(call.array(), {sizes[0], sizes[1] / places, places, sizes[2]}), std::vector<int>{0, 3, 2, 1});
  const Array y = fold(columns, image,
                       {.kernel = ints(block, 0, axes),
                        .stride = ints(strides, 0, axes),
                        .dilation = ints(dilations, 0, axes),
                        .pad = ints(pads, 0, axes),
                        .pad_end = ints(pads, axes, axes)});
  return {ordered(y, channels_last(axes + 2))};
}

}  // namespace

void add_grids(Registry& registry) {
  registry.insert({{"GridSample", sampled}, {"AffineGrid", affine}, {"RoiAlign", aligned_regions}, {"Col2Im", folded}});
}

}  // namespace samebytes::onnx
