// The ops: free functions that check their arguments here, at the caller's line, and add a node to the graph.
// Letters: N batch, H W height and width, C channels, K output channels, M N K sizes of a matrix product. Images are
// channels last. All throw ArgumentError: op, need, what came. Binary ops broadcast as NumPy does; mixed floating types
// give the wider one.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "samebytes/array.h"

namespace samebytes {

// ---- pointwise: engine/ops/pointwise.cpp
Array operator+(const Array& a, const Array& b);
Array operator-(const Array& a, const Array& b);
Array operator*(const Array& a, const Array& b);
Array operator/(const Array& a, const Array& b);
Array operator-(const Array& a);
Array operator+(const Array& a, double b);
Array operator-(const Array& a, double b);
Array operator*(const Array& a, double b);
Array operator/(const Array& a, double b);
Array operator+(double a, const Array& b);
Array operator-(double a, const Array& b);
Array operator*(double a, const Array& b);
Array operator/(double a, const Array& b);
Array maximum(const Array& a, const Array& b);
Array minimum(const Array& a, const Array& b);
Array pow(const Array& a, double exponent);
Array exp(const Array& a);
Array log(const Array& a);
Array sqrt(const Array& a);
Array rsqrt(const Array& a);
Array square(const Array& a);
Array abs(const Array& a);
Array sin(const Array& a);
Array cos(const Array& a);
Array sign(const Array& a);
Array floor(const Array& a);
Array tanh(const Array& a);
Array sigmoid(const Array& a);
Array relu(const Array& a);
Array silu(const Array& a);                          // x * sigmoid(x)
enum class GeluForm : std::uint8_t { exact, tanh };  // erf, or the tanh approximation (Hendrycks and Gimpel 2016)
Array gelu(const Array& a, GeluForm form = GeluForm::exact);
Array clip(const Array& a, double low, double high);
// Comparisons give bool arrays.
Array equal(const Array& a, const Array& b);
Array not_equal(const Array& a, const Array& b);
Array less(const Array& a, const Array& b);
Array less_equal(const Array& a, const Array& b);
Array greater(const Array& a, const Array& b);
Array greater_equal(const Array& a, const Array& b);
Array where(const Array& condition, const Array& a, const Array& b);  // condition ? a : b
Array astype(const Array& a, Dtype dtype);

// ---- views (free) and layout: engine/ops/view.cpp, engine/ops/concat.cpp
Array reshape(const Array& a, const Shape& shape);  // one size may be -1 through reshape(a, {..}) of the next overload
Array reshape(const Array& a, std::initializer_list<std::int64_t> sizes);
Array transpose(const Array& a, std::initializer_list<int> axes);  // a permutation of the axes
Array transpose(const Array& a);                                   // the last two axes exchanged
Array slice(const Array& a, int axis, std::int64_t start, std::int64_t stop, std::int64_t step = 1);
Array broadcast_to(const Array& a, const Shape& shape);
Array squeeze(const Array& a, int axis);
Array unsqueeze(const Array& a, int axis);
Array flatten(const Array& a, int start_axis = 1);  // [N, ...] -> [N, size]
Array contiguous(const Array& a);                   // the array itself where it is dense, else a dense copy
Array concat(std::span<const Array> arrays, int axis);
inline Array concat(std::initializer_list<Array> arrays, int axis) {
  return concat(std::span<const Array>(arrays.begin(), arrays.size()), axis);
}

// ---- reductions: engine/ops/reduce.cpp. An empty list of axes means all of them.
// Sums of i32, u8 and bool are i32 and wrap around; their mean is f32. Of nothing the sum is 0 and the mean NaN; max
// and min throw. NaN wins in max, min and argmax. Ties share the gradient of max and min equally, as in PyTorch's amax.
Array sum(const Array& a, std::initializer_list<int> axes = {}, bool keep = false);
Array sum(const Array& a, std::span<const int> axes, bool keep = false);
Array mean(const Array& a, std::initializer_list<int> axes = {}, bool keep = false);
Array max(const Array& a, std::initializer_list<int> axes = {}, bool keep = false);
Array min(const Array& a, std::initializer_list<int> axes = {}, bool keep = false);
Array argmax(const Array& a, int axis = -1);  // i32, the first of equal values
// The gradient of broadcasting: sums `a` down to `shape`.
Array sum_to(const Array& a, const Shape& shape);

// ---- matrix product: engine/ops/matmul.cpp
// a [..., M, K] x b [..., K, N] -> [..., M, N]; batch axes broadcast. Accumulates in f32 (f64 for f64).
Array matmul(const Array& a, const Array& b);
// x [..., in] x transpose(weight [out, in]) + bias [out]; bias may be an empty handle.
Array linear(const Array& x, const Array& weight, const Array& bias = {});

// ---- convolution: engine/ops/conv2d.cpp. src [N, H, W, C], weight [kh, kw, C / groups, K], bias [K] or an empty
// handle.
struct Conv2dOptions {
  int stride_h = 1, stride_w = 1;
  int pad_h = 0, pad_w = 0;
  int dilation_h = 1, dilation_w = 1;
  int groups = 1;
};
Array conv2d(const Array& src, const Array& weight, const Array& bias = {}, const Conv2dOptions& options = {});

// ---- pooling: engine/ops/pool2d.cpp. src [N, H, W, C].
struct Pool2dOptions {
  int kernel_h = 2, kernel_w = 2;
  int stride_h = 0, stride_w = 0;  // 0: the kernel's size
  int pad_h = 0, pad_w = 0;        // at most half the kernel
  bool ceil_mode = false;
  bool count_include_pad = true;  // avg_pool2d only
};
Array max_pool2d(const Array& src, const Pool2dOptions& options = {});  // NaN wins, as in PyTorch
Array avg_pool2d(const Array& src, const Pool2dOptions& options = {});
Array global_avg_pool2d(const Array& src);  // [N, C]

// ---- normalisation: engine/ops/batch_norm.cpp, layer_norm.cpp
struct BatchNormOptions {
  float eps = 1e-5f;
  float momentum = 0.1f;  // running = (1 - momentum) * running + momentum * batch, the variance unbiased
};
// src [..., C], scale, shift, running_mean, running_var [C] (Ioffe and Szegedy 2015). Uses the batch's statistics and,
// unless gradients are off, updates the running cells once when the node runs. Throws for fewer than two values per
// channel.
Array batch_norm_train(const Array& src, const Array& scale, const Array& shift, const Array& running_mean,
                       const Array& running_var, const BatchNormOptions& options = {});
Array batch_norm_eval(const Array& src, const Array& scale, const Array& shift, const Array& running_mean,
                      const Array& running_var, const BatchNormOptions& options = {});
// Over the last axis: src [..., C], scale and shift [C] or empty handles (Ba et al. 2016).
Array layer_norm(const Array& src, const Array& scale = {}, const Array& shift = {}, float eps = 1e-5f);

// ---- soft-max and losses: engine/ops/softmax.cpp, cross_entropy.cpp, losses.cpp
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

// ---- random: engine/ops/random.cpp
// Zeroes each element with probability p and scales the rest by 1 / (1 - p). The mask is a function of the key and the
// element's index (the stream of uniform, array.h): it is recomputed in the gradient, never stored. Without a key it
// takes the engine's next one.
Array dropout(const Array& a, double p);
Array dropout(const Array& a, double p, RandomKey key);

}  // namespace samebytes
