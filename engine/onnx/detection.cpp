// Detection: boxes chosen by their scores, and convolutions whose taps move.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "onnx/registry.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

using Int = std::int64_t;

struct Box {
  double top, left, bottom, right;
  double area() const { return (bottom - top) * (right - left); }
};

Box box_of(const double* numbers, bool is_centred) {
  if (is_centred)
    return {numbers[1] - numbers[3] / 2, numbers[0] - numbers[2] / 2, numbers[1] + numbers[3] / 2,
            numbers[0] + numbers[2] / 2};
  return {std::min(numbers[0], numbers[2]), std::min(numbers[1], numbers[3]), std::max(numbers[0], numbers[2]),
          std::max(numbers[1], numbers[3])};
}

// The area that both cover by the area that at least one covers.
double overlap(const Box& a, const Box& b) {
  const Box both{std::max(a.top, b.top), std::max(a.left, b.left), std::min(a.bottom, b.bottom),
                 std::min(a.right, b.right)};
  if (both.bottom <= both.top || both.right <= both.left || a.area() <= 0 || b.area() <= 0) return 0;
  return both.area() / (a.area() + b.area() - both.area());
}

// boxes [N, B, 4], scores [N, C, B] -> (sample, class, box) of the best boxes that do not overlap a better one.
Outputs suppressed(const Call& call) {
  const Sizes of_boxes = call.sizes(0), of_scores = call.sizes(1);
  if (of_boxes.size() != 3 || of_scores.size() != 3 || of_boxes[2] != 4 || of_scores[0] != of_boxes[0] ||
      of_scores[2] != of_boxes[1])
    call.refuse("expected boxes [N, B, 4] and scores [N, C, B]");
  const auto numbers = reals_of(call.at(0)), scores = reals_of(call.at(1));
  const Int most = call.has(2) ? ints_of(call.at(2)).at(0) : 0, boxes = of_boxes[1];
  const double threshold = call.has(3) ? reals_of(call.at(3)).at(0) : 0.0;
  const bool is_centred = call.integer("center_point_box", 0) != 0;
  std::vector<Int> result;
  for (Int line = 0; line < of_scores[0] * of_scores[1]; ++line) {
    const double* score = scores.data() + line * boxes;
    const Int sample = line / of_scores[1];
    std::vector<Int> candidates;
    for (Int box = 0; box < boxes; ++box)
      if (!call.has(4) || score[box] > reals_of(call.at(4)).at(0)) candidates.push_back(box);
    std::stable_sort(candidates.begin(), candidates.end(), [&](Int a, Int b) { return score[a] > score[b]; });
    std::vector<Box> chosen;
    for (const Int candidate : candidates) {
      if (std::ssize(chosen) >= most) break;
      const Box box = box_of(numbers.data() + (sample * boxes + candidate) * 4, is_centred);
      if (std::any_of(chosen.begin(), chosen.end(), [&](const Box& one) { return overlap(one, box) > threshold; }))
        continue;
      chosen.push_back(box);
      result.insert(result.end(), {sample, line % of_scores[1], candidate});
    }
  }
  return {ints_item(result, {std::ssize(result) / 3, 3})};
}

// Where the taps of a convolution read, in two axes.
struct Taps {
  Sizes image, kernel, result, strides, dilations, pads;

  // The places of an axis without offsets, [K, P] for K taps and P results.
  Array places(std::size_t axis, Dtype dtype) const {
    std::vector<float> values;
    for (Int tap = 0; tap < kernel[0] * kernel[1]; ++tap)
      for (Int at = 0; at < result[0] * result[1]; ++at) {
        const Int own = axis == 0 ? tap / kernel[1] : tap % kernel[1],
                  out = axis == 0 ? at / result[1] : at % result[1];
        values.push_back(static_cast<float>(out * strides[axis] - pads[axis] + own * dilations[axis]));
      }
    return astype(array(std::span<const float>(values), {kernel[0] * kernel[1], result[0] * result[1]}), dtype);
  }
};

// x [N, G, C / G, H W] at places y and x of [N, G, K P], between four pixels; 0 outside of the image: [N, G, C / G, K
// P].
Array between(const Array& image, const Array& rows, const Array& columns, const Sizes& sizes) {
  const Array top = floor(rows), left = floor(columns), down = rows - top, right = columns - left;
  Array total;
  for (const int corner : {0, 1, 2, 3}) {
    const Array row = corner / 2 == 0 ? top : top + 1.0, column = corner % 2 == 0 ? left : left + 1.0;
    const double height = static_cast<double>(sizes[0]) - 1, width = static_cast<double>(sizes[1]) - 1;
    const Array is_inside = logical_and(logical_and(greater_equal(row, 0.0), less_equal(row, height)),
                                        logical_and(greater_equal(column, 0.0), less_equal(column, width)));
    const Array place = astype(clip(row, 0.0, height) * (width + 1) + clip(column, 0.0, width), i32);
    const Array share = (corner / 2 == 0 ? 1.0 - down : down) * (corner % 2 == 0 ? 1.0 - right : right) *
                        astype(is_inside, image.dtype());
    Shape shape = image.shape();
    shape[3] = place.shape()[2];
    const Array value = gather(image, 3, broadcast_to(unsqueeze(place, 2), shape)) * unsqueeze(share, 2);
    total = total.defined() ? total + value : value;
  }
  return total;
}

// x [N, C, H, W], w [O, C / groups, taps], offsets [N, D taps 2, P], mask [N, D taps, P] (J. Dai et al., "Deformable
// convolutional networks", 2017; X. Zhu et al., "Deformable ConvNets v2", 2019).
Outputs deformed(const Call& call) {
  const Array x = call.floating(0), weight = call.floating(1), offset = call.floating(2);
  const Sizes in = call.sizes(0), taps = call.sizes(1), of_offset = call.sizes(2);
  if (in.size() != 4 || taps.size() != 4 || of_offset.size() != 4) call.refuse("expected images of two axes");
  const Int groups = call.integer("group", 1), movers = call.integer("offset_group", 1), k = taps[2] * taps[3];
  const Int results = of_offset[2] * of_offset[3];
  const Taps at{{in[2], in[3]},
                {taps[2], taps[3]},
                {of_offset[2], of_offset[3]},
                call.integers("strides", {1, 1}),
                call.integers("dilations", {1, 1}),
                call.integers("pads", {0, 0, 0, 0})};
  if (groups < 1 || movers < 1 || taps[1] * groups != in[1] || taps[0] % groups != 0 || in[1] % movers != 0 ||
      of_offset[1] != movers * k * 2 || of_offset[0] != in[0] || at.strides.size() != 2 || at.dilations.size() != 2 ||
      at.pads.size() != 4)
    call.refuse("its groups, offsets and attributes do not fit the sizes");
  if (in[2] * in[3] > (Int{1} << 24)) call.refuse("an image of over 2^24 pixels is not supported");
  const Array wide = x.dtype() == f64 ? x : astype(x, f32);
  const Array moves = reshape(astype(offset, wide.dtype()), {in[0], movers, k, 2, results});
  const auto places = [&](std::size_t axis) {
    const Array move = squeeze(slice(moves, 3, static_cast<Int>(axis), static_cast<Int>(axis) + 1), 3);
    return reshape(move + at.places(axis, wide.dtype()), {in[0], movers, k * results});
  };
  const Array rows = places(0), columns = places(1);
  const Array image = reshape(wide, {in[0], movers, in[1] / movers, in[2] * in[3]});
  Array values = between(image, rows, columns, at.image);
  if (call.has(4)) values = values * reshape(astype(call.floating(4), wide.dtype()), {in[0], movers, 1, k * results});
  const Array columned = reshape(values, {in[0], groups, taps[1] * k, results});
  const Array matrix = reshape(astype(weight, wide.dtype()), {groups, taps[0] / groups, taps[1] * k});
  Array y = reshape(matmul(matrix, columned), {in[0], taps[0], at.result[0], at.result[1]});
  if (call.has(3)) y = y + reshape(astype(call.floating(3), wide.dtype()), {taps[0], 1, 1});
  return {item_of(astype(y, x.dtype()))};
}

}  // namespace

void add_detection(Registry& registry) {
  registry.insert({{"NonMaxSuppression", suppressed}, {"DeformConv", deformed}});
}

}  // namespace samebytes::onnx
