// Detection: boxes chosen by their scores.
#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/registry.h"

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
  const double least = call.has(4) ? reals_of(call.at(4)).at(0) : -std::numeric_limits<double>::infinity();
  const bool is_centred = call.integer("center_point_box", 0) != 0;
  std::vector<Int> result;
  if (boxes == 0) return {ints_item(result, {0, 3})};
  for (Int line = 0; line < of_scores[0] * of_scores[1]; ++line) {
    const double* score = scores.data() + line * boxes;
    const Int sample = line / of_scores[1];
    std::vector<Int> candidates;
    for (Int box = 0; box < boxes; ++box)
      if (!std::isnan(score[box]) && (!call.has(4) || score[box] > least)) candidates.push_back(box);
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

}  // namespace

void add_detection(Registry& registry) { registry["NonMaxSuppression"] = suppressed; }

}  // namespace samebytes::onnx
