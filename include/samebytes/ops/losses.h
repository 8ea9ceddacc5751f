// Soft-max and losses: engine/ops/softmax.cpp, cross_entropy.cpp, losses.cpp.
// All throw ArgumentError: op, need, what came.
#pragma once

#include <cstdint>
#include <optional>

#include "samebytes/array.h"

namespace samebytes {

Array softmax(const Array& a);      // over the last axis
Array log_softmax(const Array& a);  // over the last axis
enum class Reduction : std::uint8_t { mean, sum, none };
struct CrossEntropyOptions {
  float label_smoothing = 0.0f;                // in [0, 1)
  std::optional<std::int32_t> ignore_index{};  // rows with this label do not count
  Array class_weight{};                        // [C] or an empty handle
  Reduction reduction = Reduction::mean;
};
// logits [N, C]; target i32 or u8 [N] of class indices, or floating [N, C] of probabilities; more axes may stand before
// C. PyTorch's definition, also of the weighted mean. The loss of 16-bit logits is f32; class_weight gets no gradient.
// A label outside [0, C) gives NaN, found by check_nan; readers check labels before they come here.
Array cross_entropy(const Array& logits, const Array& target, const CrossEntropyOptions& options = {});
Array bce_with_logits(const Array& logits, const Array& target, Reduction reduction = Reduction::mean);
Array mse_loss(const Array& a, const Array& b, Reduction reduction = Reduction::mean);

}  // namespace samebytes
