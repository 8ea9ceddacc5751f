// Second derivatives of every public op: the gradient of its gradient against central differences of the gradient in
// double, or an error that names the op. A missing gradient is never counted as zero. The ops that refuse are listed
// here and in docs/second_derivatives.md, and every function of include/samebytes/ops/ has a row in one of the tables.
// Over 400 lines because it is one table.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <set>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/source_tree.h"

namespace samebytes::testing {
namespace {

using In = std::span<const Array>;
using Inputs = std::vector<GradientInput>;

class SecondDerivativesTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(SecondDerivativesTest);

struct Case {
  const char* op;  // the public function
  ArrayFunction f;
  Inputs inputs;
};

GradientInput of(const Shape& shape, std::uint64_t seed = 1, double low = -1, double high = 1) {
  return random_input("x" + std::to_string(seed), shape, seed, low, high);
}
GradientInput positive(const Shape& shape, std::uint64_t seed = 1) { return of(shape, seed, 0.3, 1.7); }

// Points where the corners of the activations are further away than a step.
Inputs around() { return {{"x", {8}, {-4.1, -2.3, -0.7, -0.2, 0.3, 0.9, 2.2, 6.5}}}; }

Array labels() { return array(std::vector<std::int32_t>{2, 0, 3}, {3}); }
Array numbers(std::initializer_list<std::int32_t> values, const Shape& shape) {
  return array(std::vector<std::int32_t>(values), shape);
}

// A matrix [rows, columns] of random values in blocks of Q8_0.
Array quantised_rows(std::int64_t rows, std::int64_t columns) {
  const auto values = random_values(rows * columns, 5);
  const auto blocks = quantise(std::vector<float>(values.begin(), values.end()), columns, QuantisedType::q8_0);
  std::vector<std::uint8_t> bytes(blocks.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::to_integer<std::uint8_t>(blocks[i]);
  return array(bytes, {rows, static_cast<std::int64_t>(bytes.size()) / rows});
}

ArrayFunction one(Array (*op)(const Input&)) {
  return [op](In x) { return op(x[0]); };
}
ArrayFunction two(Array (*op)(const Input&, const Input&)) {
  return [op](In x) { return op(x[0], x[1]); };
}

std::vector<Case> pointwise_cases() {
  return {
      {"operator+", two(operator+), {of({2, 3}), of({3}, 2)}},
      {"operator+", [](In x) { return x[0] + 2.0 + (1.0 + x[0]); }, {of({3})}},
      {"operator-", two(operator-), {of({2, 3}), of({3}, 2)}},
      {"operator-", [](In x) { return -x[0] - 2.0 + (1.0 - x[0]); }, {of({3})}},
      {"operator*", two(operator*), {of({2, 3}), of({3}, 2)}},
      {"operator*", [](In x) { return x[0] * 3.0 + 2.0 * x[0]; }, {of({3})}},
      {"operator/", two(operator/), {of({2, 3}), positive({3}, 2)}},
      {"operator/", [](In x) { return x[0] / 3.0 + 2.0 / x[0]; }, {positive({3})}},
      {"maximum", two(maximum), {of({7}), of({7}, 2)}},
      {"minimum", two(minimum), {of({7}), of({7}, 2)}},
      {"remainder", [](In x) { return remainder(x[0], x[1]); }, {positive({5}), of({5}, 2, 3, 4)}},
      {"fmod", [](In x) { return fmod(x[0], x[1]); }, {positive({5}), of({5}, 2, 3, 4)}},
      {"atan2", two(atan2), {of({5}), positive({5}, 2)}},
      {"pow", [](In x) { return pow(x[0], 2.3); }, {positive({5})}},
      {"pow", [](In x) { return pow(x[0], x[1]) + pow(2.0, x[1]); }, {positive({5}), of({5}, 2)}},
      {"pow", [](In x) { return pow(x[0], 3.0) + pow(x[0], -2.0) + pow(x[0], 1.5); }, {positive({5})}},
      {"pow", [](In x) { return pow(x[0], 2.0) + pow(x[0], 1.0) + pow(x[0], 0.0); }, {of({5})}},
      {"exp", one(exp), {of({5})}},
      {"expm1", one(expm1), {of({5})}},
      {"log", one(log), {positive({5})}},
      {"exp2", one(exp2), {of({5})}},
      {"log1p", one(log1p), {positive({5})}},
      {"log2", one(log2), {positive({5})}},
      {"log10", one(log10), {positive({5})}},
      {"reciprocal", one(reciprocal), {positive({5})}},
      {"tan", one(tan), {of({5})}},
      {"asin", one(asin), {of({5}, 1, -0.8, 0.8)}},
      {"acos", one(acos), {of({5}, 1, -0.8, 0.8)}},
      {"atan", one(atan), {of({5})}},
      {"sinh", one(sinh), {of({5})}},
      {"cosh", one(cosh), {of({5})}},
      {"asinh", one(asinh), {of({5})}},
      {"acosh", one(acosh), {of({5}, 1, 1.3, 3)}},
      {"atanh", one(atanh), {of({5}, 1, -0.8, 0.8)}},
      {"sqrt", one(sqrt), {positive({5})}},
      {"rsqrt", one(rsqrt), {positive({5})}},
      {"square", one(square), {of({5})}},
      {"abs", one(abs), around()},
      {"sin", one(sin), {of({5})}},
      {"cos", one(cos), {of({5})}},
      {"sign", one(sign), around()},
      {"floor", one(floor), around()},
      {"ceil", one(ceil), around()},
      {"trunc", one(trunc), around()},
      {"round", one(round), {{"x", {4}, {-4.1, -2.3, 0.3, 6.4}}}},
      {"erf", one(erf), around()},
      {"tanh", one(tanh), {of({5})}},
      {"sigmoid", one(sigmoid), {of({5})}},
      {"relu", one(relu), around()},
      {"silu", one(silu), around()},
      {"gelu", [](In x) { return gelu(x[0]); }, around()},
      {"gelu", [](In x) { return gelu(x[0], GeluForm::tanh); }, {of({8})}},
      {"leaky_relu", [](In x) { return leaky_relu(x[0]); }, around()},
      {"prelu", two(prelu), {around()[0], of({1}, 2)}},
      {"elu", [](In x) { return elu(x[0], 1.5); }, around()},
      {"selu", one(selu), around()},
      {"softplus", [](In x) { return softplus(x[0], 2, 3); }, around()},
      {"mish", one(mish), around()},
      {"relu6", one(relu6), around()},
      {"hard_sigmoid", one(hard_sigmoid), around()},
      {"hard_swish", one(hard_swish), around()},
      {"log_sigmoid", one(log_sigmoid), around()},
      {"glu", [](In x) { return glu(x[0]); }, {of({3, 4})}},
      {"clip", [](In x) { return clip(x[0], -1.0, 2.0); }, around()},
      {"where", [](In x) { return where(greater(x[0], x[1]), x[0] * x[1], x[1]); }, {of({7}), of({7}, 2)}},
      {"masked_fill", [](In x) { return masked_fill(x[0], greater(x[0], x[0] * 0.5), 2.0); }, around()},
      {"astype", [](In x) { return astype(x[0], f64); }, {of({5})}},
      {"dropout",
       [](In x) {
         return dropout(x[0], 0.4, {7, 3});
       },
       {of({9})}},
  };
}

std::vector<Case> layout_cases() {
  return {
      {"copy", [](In x) { return copy(x[0]); }, {of({2, 3})}},
      {"reshape",
       [](In x) {
         return reshape(x[0], {3, 2});
       },
       {of({2, 3})}},
      {"transpose",
       [](In x) {
         return transpose(x[0]) * transpose(transpose(x[1], {1, 0}));
       },
       {of({2, 3}), of({3, 2}, 2)}},
      {"slice", [](In x) { return slice(x[0], 0, 1, 6, 2); }, {of({7})}},
      {"slice", [](In x) { return slice(x[0], 0, 0, 2) * slice(x[0], 0, 2, 4); }, {of({4})}},
      {"flip", [](In x) { return flip(x[0], {0}); }, {of({5})}},
      {"split",
       [](In x) {
         return split(x[0], 2)[0] * split(x[0], {2, 2})[1];
       },
       {of({4})}},
      {"broadcast_to",
       [](In x) {
         return broadcast_to(x[0], {2, 3});
       },
       {of({3})}},
      {"squeeze", [](In x) { return squeeze(x[0], 0); }, {of({1, 3})}},
      {"unsqueeze", [](In x) { return unsqueeze(x[0], 0); }, {of({3})}},
      {"flatten", [](In x) { return flatten(x[0]); }, {of({2, 2, 2})}},
      {"contiguous", [](In x) { return contiguous(transpose(x[0])); }, {of({2, 3})}},
      {"concat",
       [](In x) {
         return concat({x[0], x[1]}, 0);
       },
       {of({2, 3}), of({1, 3}, 2)}},
      {"stack",
       [](In x) {
         return stack({x[0], x[1]});
       },
       {of({3}), of({3}, 2)}},
      {"tile",
       [](In x) {
         return tile(x[0], {2, 2});
       },
       {of({3})}},
      {"repeat_interleave", [](In x) { return repeat_interleave(x[0], 2, 0); }, {of({3})}},
      {"roll", [](In x) { return roll(x[0], 2, 0); }, {of({5})}},
      {"pad",
       [](In x) {
         return pad(x[0], {{1, 2}}) + pad(x[0], {{2, 1}}, PadMode::constant, 1.0);
       },
       {of({4})}},
      {"pad",
       [](In x) {
         return pad(x[0], {{1, 2}}, PadMode::reflect);
       },
       {of({4})}},
      {"pad",
       [](In x) {
         return pad(x[0], {{1, 2}}, PadMode::replicate) * pad(x[0], {{2, 1}}, PadMode::circular);
       },
       {of({4})}},
      {"embedding",
       [](In x) {
         return embedding(numbers({1, 3, 1, 0, 2}, {5}), x[0], 2);
       },
       {of({4, 2})}},
      {"take",
       [](In x) {
         return take(x[0], numbers({2, 0, 2, 1}, {2, 2}), 1);
       },
       {of({2, 3})}},
      {"gather",
       [](In x) {
         return gather(x[0], 1, numbers({2, 0, 1, 1}, {2, 2}));
       },
       {of({2, 3})}},
      {"scatter_add",
       [](In x) {
         return scatter_add(x[0], 1, numbers({2, 0, 1, 1}, {2, 2}), x[1]);
       },
       {of({2, 3}), of({2, 2}, 2)}},
      {"scatter_add",
       [](In x) {
         return scatter_add(x[0], 0, numbers({2, 0, 2}, {3}), x[1]);
       },
       {of({4}), of({3}, 2)}},
      {"scatter",
       [](In x) {
         return scatter(x[0], 1, numbers({2, 0, 1, 1}, {2, 2}), x[1]);
       },
       {of({2, 3}), of({2, 2}, 2)}},
      {"scatter_reduce",
       [](In x) {
         return scatter_reduce(x[0], 0, numbers({2, 0, 2}, {3}), x[1], {.reduce = ScatterReduce::prod});
       },
       {of({4}), of({3}, 2)}},
      {"scatter_reduce",
       [](In x) {
         return scatter_reduce(x[0], 0, numbers({2, 0, 2}, {3}), x[1], {.reduce = ScatterReduce::amax});
       },
       {of({4}), of({3}, 2)}},
      {"sort", [](In x) { return sort(x[0]).values; }, {of({2, 5})}},
      {"top_k", [](In x) { return top_k(x[0], 2).values; }, {of({2, 5})}},
      {"cumsum", [](In x) { return cumsum(x[0], 0); }, {of({5})}},
      {"resize",
       [](In x) { return resize(x[0], {.out_h = 3, .out_w = 5, .mode = ResizeMode::bilinear}); },
       {of({1, 2, 3, 2})}},
      {"resize", [](In x) { return resize(x[0], {.out_h = 4, .out_w = 5}); }, {of({1, 2, 3, 2})}},
      {"resample_axis",
       [](In x) {
         return resample_axis(x[0], 0, {.in = 3, .taps = 2, .places = {0, 2, 1, -1}, .weights = {0.5, 2, -1, 0}});
       },
       {of({3, 2})}},
      {"interpolate",
       [](In x) {
         return interpolate(x[0], {.size = {4, 2}, .mode = InterpolateMode::cubic});
       },
       {of({1, 2, 3, 2})}},
      {"unfold", [](In x) { return unfold(x[0], {.kernel = {2}, .pad = {1}}); }, {of({1, 3, 2})}},
      {"fold", [](In x) { return fold(x[0], {3}, {.kernel = {2}, .pad = {1}}); }, {of({1, 4, 2, 2})}},
      {"grid_sample",
       [](In x) { return grid_sample(x[0], x[1], {.mode = GridSampleMode::bicubic}); },
       {of({1, 3, 2, 1}), of({1, 2, 1, 2}, 2, -0.8, 0.8)}},
      {"affine_grid",
       [](In x) {
         return affine_grid(x[0], {2, 2});
       },
       {of({1, 2, 3})}},
      {"roi_align",
       [](In x) {
         return roi_align(x[0], array({0.5f, 0.2f, 2.5f, 2.9f}, {1, 4}), numbers({0}, {1}), {.out_h = 2, .out_w = 1});
       },
       {of({1, 3, 3, 1})}},
      {"rotary", [](In x) { return rotary(x[0]); }, {of({1, 3, 2, 4})}},
  };
}

std::vector<Case> reduction_cases() {
  return {
      {"var", [](In x) { return var(x[0], 1); }, {of({2, 3})}},
      {"std", [](In x) { return std(x[0], 1); }, {of({2, 3})}},
      {"norm", [](In x) { return norm(x[0], 2, 1) + norm(x[0], 3); }, {of({2, 3})}},
      {"logsumexp", [](In x) { return logsumexp(x[0], 1); }, {of({2, 3})}},
      {"prod", [](In x) { return prod(x[0], 0); }, {positive({2, 3})}},
      {"quantile", [](In x) { return quantile(x[0], 0.3); }, {of({2, 4})}},
      {"median", [](In x) { return median(x[0], 0); }, {of({4, 2})}},
      {"einsum", [](In x) { return einsum("ij,jk->ki", x); }, {of({2, 3}), of({3, 2}, 2)}},
      {"einsum", [](In x) { return einsum("...ii->i", {x[0] * x[0]}); }, {of({2, 3, 3})}},
      {"tril", [](In x) { return tril(x[0]); }, {of({3, 3})}},
      {"triu", [](In x) { return triu(x[0], 1); }, {of({3, 3})}},
      {"meshgrid", [](In x) { return meshgrid(x)[0] * meshgrid(x)[1]; }, {of({2}), of({3}, 2)}},
      {"sum", [](In x) { return sum(x[0], {0}); }, {of({3, 4})}},
      {"mean", [](In x) { return mean(x[0], {1}); }, {of({3, 4})}},
      {"sum_of_squares", one(sum_of_squares), {of({3, 4})}},
      {"max", [](In x) { return max(x[0], {1}); }, {of({3, 4})}},
      {"min", [](In x) { return min(x[0], {0}); }, {of({3, 4})}},
      {"sum_to", [](In x) { return sum_to(x[0], {4}); }, {of({3, 4})}},
      {"matmul", two(matmul), {of({3, 4}), of({4, 2}, 2)}},
      {"matmul", two(matmul), {of({2, 2, 3}), of({2, 3, 2}, 2)}},
      {"linear", [](In x) { return linear(x[0], x[1], x[2]); }, {of({3, 4}), of({2, 4}, 2), of({2}, 3)}},
      {"quantised_linear",
       [](In x) { return quantised_linear(x[0], quantised_rows(3, 32), QuantisedType::q8_0, x[1]); },
       {of({2, 32}), of({3}, 2)}},
      {"softmax", one(softmax), {of({2, 4})}},
      {"log_softmax", one(log_softmax), {of({2, 4})}},
      {"layer_norm", [](In x) { return layer_norm(x[0], x[1], x[2]); }, {of({3, 5}), of({5}, 2), of({5}, 3)}},
      {"layer_norm", [](In x) { return layer_norm(x[0]); }, {of({3, 5})}},
      {"rms_norm", [](In x) { return rms_norm(x[0], x[1]); }, {of({3, 5}), of({5}, 2)}},
      {"rms_norm", [](In x) { return rms_norm(x[0], {}, 0.1f); }, {of({3, 5})}},
      {"group_norm", [](In x) { return group_norm(x[0], 2, x[1], x[2]); }, {of({2, 3, 4}), of({4}, 2), of({4}, 3)}},
      {"group_norm", [](In x) { return group_norm(x[0], 1); }, {of({2, 2, 3})}},
      {"instance_norm", [](In x) { return instance_norm(x[0], x[1]); }, {of({2, 3, 2}), of({2}, 2)}},
      {"max_pool1d", [](In x) { return max_pool1d(x[0], {.kernel = 3, .stride = 2, .pad = 1}); }, {of({2, 7, 2})}},
      {"max_pool2d",
       [](In x) {
         return max_pool2d(x[0], {.kernel_h = 3, .kernel_w = 2, .stride_h = 2, .stride_w = 1, .pad_h = 1, .pad_w = 1});
       },
       {of({2, 4, 3, 2})}},
      {"avg_pool1d", [](In x) { return avg_pool1d(x[0], {.kernel = 3, .stride = 2, .pad = 1}); }, {of({2, 7, 2})}},
      {"avg_pool2d",
       [](In x) {
         return avg_pool2d(x[0], {.kernel_h = 3, .kernel_w = 2, .stride_h = 2, .stride_w = 1, .pad_h = 1, .pad_w = 1});
       },
       {of({2, 4, 3, 2})}},
      {"max_pool2d", [](In x) { return max_pool2d(x[0], {.stride_w = 1, .dilation_w = 2}); }, {of({1, 4, 5, 2})}},
      {"avg_pool1d", [](In x) { return avg_pool1d(x[0], {.stride = 1, .pad_end = 1}); }, {of({2, 5, 2})}},
      {"max_pool3d", [](In x) { return max_pool3d(x[0]); }, {of({1, 2, 4, 2, 2})}},
      {"avg_pool3d", [](In x) { return avg_pool3d(x[0], {.stride_h = 1}); }, {of({1, 2, 3, 2, 2})}},
      {"max_pool1d_with_indices", [](In x) { return max_pool1d_with_indices(x[0]).values; }, {of({2, 4, 2})}},
      {"max_pool2d_with_indices", [](In x) { return max_pool2d_with_indices(x[0]).values; }, {of({1, 4, 2, 2})}},
      {"max_pool3d_with_indices", [](In x) { return max_pool3d_with_indices(x[0]).values; }, {of({1, 2, 2, 2, 2})}},
      {"max_unpool1d",
       [](In x) {
         return max_unpool1d(x[0], numbers({2, 0}, {1, 2, 1}), 4);
       },
       {of({1, 2, 1})}},
      {"max_unpool2d",
       [](In x) {
         return max_unpool2d(x[0], numbers({3, 0}, {1, 2, 1, 1}), 2, 2);
       },
       {of({1, 2, 1, 1})}},
      {"max_unpool3d",
       [](In x) {
         return max_unpool3d(x[0], numbers({3, 0}, {1, 2, 1, 1, 1}), 1, 2, 2);
       },
       {of({1, 2, 1, 1, 1})}},
      {"lp_pool1d", [](In x) { return lp_pool1d(x[0], 3); }, {positive({1, 4, 2})}},
      {"lp_pool2d", [](In x) { return lp_pool2d(x[0], 2); }, {positive({1, 2, 4, 1})}},
      {"lp_pool3d", [](In x) { return lp_pool3d(x[0], 2.5); }, {positive({1, 2, 2, 2, 2})}},
      {"adaptive_avg_pool3d", [](In x) { return adaptive_avg_pool3d(x[0], 2, 1, 2); }, {of({1, 3, 2, 2, 1})}},
      {"adaptive_max_pool3d", [](In x) { return adaptive_max_pool3d(x[0], 2, 1, 2); }, {of({1, 3, 2, 2, 1})}},
      {"global_avg_pool1d", one(global_avg_pool1d), {of({2, 3, 2})}},
      {"global_avg_pool2d", one(global_avg_pool2d), {of({2, 3, 2, 2})}},
      {"adaptive_avg_pool1d", [](In x) { return adaptive_avg_pool1d(x[0], 3); }, {of({2, 7, 2})}},
      {"adaptive_max_pool1d", [](In x) { return adaptive_max_pool1d(x[0], 3); }, {of({2, 7, 2})}},
      {"adaptive_avg_pool2d", [](In x) { return adaptive_avg_pool2d(x[0], 2, 3); }, {of({1, 3, 5, 2})}},
      {"adaptive_max_pool2d", [](In x) { return adaptive_max_pool2d(x[0], 2, 3); }, {of({1, 3, 5, 2})}},
      {"conv1d",
       [](In x) { return conv1d(x[0], x[1], x[2], {.stride = 2, .pad = 1}); },
       {of({2, 5, 2}), of({3, 2, 2}, 2), of({2}, 3)}},
      {"conv2d",
       [](In x) { return conv2d(x[0], x[1], x[2], {.pad_h = 1, .pad_w = 1}); },
       {of({1, 4, 3, 2}), of({3, 3, 2, 2}, 2), of({2}, 3)}},
      {"conv2d",
       [](In x) { return conv2d(x[0], x[1], {}, {.stride_h = 2, .dilation_w = 2, .groups = 2}); },
       {of({1, 4, 5, 4}), of({2, 2, 2, 4}, 2)}},
      {"conv3d", [](In x) { return conv3d(x[0], x[1]); }, {of({1, 3, 3, 2, 1}), of({2, 2, 2, 1, 2}, 2)}},
      {"conv_transpose1d",
       [](In x) { return conv_transpose1d(x[0], x[1], x[2], {.stride = 2}); },
       {of({1, 3, 2}), of({2, 2, 2}, 2), of({2}, 3)}},
      {"conv_transpose2d", [](In x) { return conv_transpose2d(x[0], x[1]); }, {of({1, 2, 3, 2}), of({2, 2, 1, 2}, 2)}},
      {"conv2d",
       [](In x) { return conv2d(x[0], x[1], {}, {.pad_w = 1, .pad_end_h = 2, .pad_end_w = 0}); },
       {of({1, 3, 4, 1}), of({3, 3, 1, 2}, 2)}},
      {"conv_transpose3d",
       [](In x) { return conv_transpose3d(x[0], x[1]); },
       {of({1, 2, 1, 2, 2}), of({2, 1, 2, 1, 2}, 2)}},
  };
}

Array smoothed(In x, const CrossEntropyOptions& options) { return cross_entropy(x[0], labels(), options); }

std::vector<Case> loss_cases() {
  const Array weight = array(std::vector<double>{0.5, 1, 2, 0.7}, {4});
  const auto signs = [] { return array(std::vector<double>{1, -1, 1}, {3}); };
  const Array target = array(std::vector<double>(random_values(6, 5, 0.1, 0.9)), {2, 3});
  return {
      {"cross_entropy", [](In x) { return smoothed(x, {}); }, {of({3, 4})}},
      {"cross_entropy", [](In x) { return smoothed(x, {.reduction = Reduction::sum}); }, {of({3, 4})}},
      {"cross_entropy",
       [weight](In x) { return smoothed(x, {.label_smoothing = 0.1f, .ignore_index = 0, .class_weight = weight}); },
       {of({3, 4})}},
      {"cross_entropy", [](In x) { return smoothed(x, {.reduction = Reduction::none}); }, {of({3, 4})}},
      {"cross_entropy", [](In x) { return cross_entropy(x[0], x[1]); }, {of({3, 4}), of({3, 4}, 2, 0.1, 0.9)}},
      {"nll_loss", [](In x) { return nll_loss(x[0], labels()); }, {of({3, 4})}},
      {"focal_loss", [](In x) { return focal_loss(x[0], labels(), {.gamma = 1.7}); }, {of({3, 4})}},
      {"sigmoid_focal_loss", [target](In x) { return sigmoid_focal_loss(x[0], target, {.gamma = 1.7}); }, {of({2, 3})}},
      {"multi_margin_loss", [](In x) { return multi_margin_loss(x[0], labels(), {.p = 2}); }, {of({3, 4})}},
      {"bce_with_logits", [](In x) { return bce_with_logits(x[0], x[1]); }, {of({2, 3}), of({2, 3}, 2, 0.1, 0.9)}},
      {"bce_loss", [](In x) { return bce_loss(x[0], x[1]); }, {of({2, 3}, 1, 0.1, 0.9), of({2, 3}, 2, 0.1, 0.9)}},
      {"kl_div", [](In x) { return kl_div(x[0], x[1]); }, {of({2, 3}), of({2, 3}, 2, 0.1, 0.9)}},
      {"gaussian_nll_loss",
       [](In x) { return gaussian_nll_loss(x[0], x[1], x[2]); },
       {of({2, 3}), of({2, 3}, 2), positive({2, 3}, 3)}},
      {"mse_loss", [](In x) { return mse_loss(x[0], x[1]); }, {of({2, 3}), of({2, 3}, 2)}},
      {"l1_loss", [](In x) { return l1_loss(x[0], x[1]); }, {of({2, 3}), of({2, 3}, 2)}},
      {"smooth_l1_loss", [](In x) { return smooth_l1_loss(x[0], x[1]); }, {of({2, 3}), of({2, 3}, 2)}},
      {"huber_loss", [](In x) { return huber_loss(x[0], x[1], {.delta = 0.4}); }, {of({2, 3}), of({2, 3}, 2)}},
      {"hinge_loss", [signs](In x) { return hinge_loss(x[0], signs()); }, {of({3})}},
      {"hinge_embedding_loss", [signs](In x) { return hinge_embedding_loss(x[0], signs()); }, {positive({3})}},
      {"margin_ranking_loss",
       [signs](In x) { return margin_ranking_loss(x[0], x[1], signs()); },
       {of({3}), of({3}, 2)}},
      {"cosine_similarity", [](In x) { return cosine_similarity(x[0], x[1]); }, {of({2, 3}), of({2, 3}, 2)}},
      {"cosine_embedding_loss",
       [signs](In x) { return cosine_embedding_loss(x[0], x[1], signs()); },
       {of({3, 2}), of({3, 2}, 2)}},
      {"triplet_margin_loss",
       [](In x) { return triplet_margin_loss(x[0], x[1], x[2]); },
       {of({2, 3}), of({2, 3}, 2), of({2, 3}, 3)}},
      {"nt_xent_loss", [](In x) { return nt_xent_loss(x[0]); }, {of({4, 3})}},
  };
}

struct Norm {
  Array mean = cell(zeros({3}, f64), "mean"), var = cell(ones({3}, f64), "var");
};

// The second derivative of these is an error that names what has none.
struct Refusal {
  const char* op;
  const char* says;
  ArrayFunction f;
  Inputs inputs;
};
std::vector<Refusal> refusals() {
  const auto attend = [](In x) { return scaled_dot_product_attention(x[0], x[1], x[2]); };
  const auto head = [](In x) { return linear_cross_entropy(x[0], x[1], labels()); };
  return {
      {"cumprod", "cumprod_backward: has no gradient", [](In x) { return cumprod(x[0], 0); }, {positive({4})}},
      {"scaled_dot_product_attention",
       "attention_backward: has no gradient",
       attend,
       {of({1, 3, 1, 4}), of({1, 3, 1, 4}, 2), of({1, 3, 1, 4}, 3)}},
      {"packed_attention",
       "attention_backward: has no gradient",
       [](In x) { return packed_attention(x[0], 1); },
       {of({1, 3, 3, 4})}},
      {"lstm",
       "lstm_backward: has no gradient",
       [](In x) {
         return lstm(x[0], {x[1], x[2]}).y;
       },
       {of({1, 3, 2}), of({8, 2}, 2), of({8, 2}, 3)}},
      {"gru",
       "gru_backward: has no gradient",
       [](In x) {
         return gru(x[0], {x[1], x[2]}).y;
       },
       {of({1, 3, 2}), of({6, 2}, 2), of({6, 2}, 3)}},
      {"linear_cross_entropy", "linear_cross_entropy_backward: has no gradient", head, {of({3, 2}), of({4, 2}, 2)}},
  };
}

// Without a floating result, or without a derivative at all: comparisons, places, random draws, updates.
const std::set<std::string> kNoDerivative = {
    "equal",       "not_equal",   "less",         "less_equal",   "greater",          "greater_equal", "operator<",
    "operator>",   "operator!",   "operator&",    "operator|",    "operator^",        "logical_and",   "logical_or",
    "logical_xor", "logical_not", "isnan",        "isinf",        "isfinite",         "bincount",      "histogram",
    "argmin",      "all",         "any",          "argmax",       "argsort",          "all_finite",    "one_hot",
    "categorical", "multinomial", "update_parts", "update_slice", "round_stochastic", "dequantise",    "int8_linear",
    "int8_conv1d", "int8_conv2d"};

// The gradients of sum(w * (y + y^2)), one behind the other: y^2 makes each gradient op depend on the inputs through
// its upstream gradient, too.
Array first_gradients(const ArrayFunction& f, In x) {
  const Array y = f(x);
  const Array w = array(std::vector<double>(random_values(y.size(), 99, 0.5, 1.5)), y.shape());
  std::vector<Array> flat;
  for (const Array& g : gradients(sum(w * (y + y * y)), x)) flat.push_back(reshape(g, {-1}));
  return concat(flat, 0);
}

void expect_second_derivatives(const std::vector<Case>& cases) {
  for (const Case& c : cases)
    EXPECT_TRUE(check_gradients([&](In x) { return first_gradients(c.f, x); }, c.inputs)) << c.op;
}

TEST_P(SecondDerivativesTest, pointwise_ops_match_differences_of_their_gradients) {
  SAMEBYTES_NEEDS_F64();
  expect_second_derivatives(pointwise_cases());
}

TEST_P(SecondDerivativesTest, ops_that_move_elements_match_differences_of_their_gradients) {
  SAMEBYTES_NEEDS_F64();
  expect_second_derivatives(layout_cases());
}

TEST_P(SecondDerivativesTest, reductions_products_and_norms_match_differences_of_their_gradients) {
  SAMEBYTES_NEEDS_F64();
  expect_second_derivatives(reduction_cases());
}

TEST_P(SecondDerivativesTest, losses_match_differences_of_their_gradients) {
  SAMEBYTES_NEEDS_F64();
  expect_second_derivatives(loss_cases());
}

TEST_P(SecondDerivativesTest, batch_norm_matches_differences_of_its_gradient) {
  SAMEBYTES_NEEDS_F64();
  const Norm norm;
  const Inputs inputs{of({7, 3}), of({3}, 2), of({3}, 3)};
  const auto train = [&](In x) { return batch_norm_train(x[0], x[1], x[2], norm.mean, norm.var); };
  const auto eval = [&](In x) { return batch_norm_eval(x[0], x[1], x[2], norm.mean, norm.var); };
  expect_second_derivatives({{"batch_norm_train", train, inputs},
                             {"batch_norm_train", [&](In x) { return relu(train(x)); }, inputs},
                             {"batch_norm_eval", eval, inputs}});
}

TEST_P(SecondDerivativesTest, exact_gelu_has_a_second_derivative_everywhere) {
  const Array x = array({0.0f, 1.0f, -2.0f, 30.0f, 1e30f});
  const Array first = gradients(sum(gelu(x)), std::vector<Array>{x})[0];
  const std::vector<double> second = gradients(sum(first), std::vector<Array>{x})[0].to_vector<double>();
  const auto want = [](double v) { return std::exp(-v * v / 2) * 0.3989422804014327 * (2 - v * v); };
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(second[i], want(x.to_vector<double>()[i]), 1e-6) << i;
  EXPECT_EQ(second[4], 0);
}

TEST_P(SecondDerivativesTest, a_gradient_that_nobody_wrote_is_an_error_and_not_zero) {
  SAMEBYTES_NEEDS_F64();
  for (const Refusal& refusal : refusals()) {
    std::vector<Array> x;
    for (const GradientInput& input : refusal.inputs)
      x.push_back(array(std::span<const double>(input.values), input.shape));
    const Array first = sum(first_gradients(refusal.f, x));
    EXPECT_EQ(message_of<ArgumentError>([&] { gradients(first, x); }), refusal.says) << refusal.op;
  }
}

TEST_P(SecondDerivativesTest, a_custom_op_that_leaves_a_gradient_out_is_an_error) {
  const CustomOp op{
      .name = "half_done", .entry = "half_done", .source = "", .gradient = [](const Array& dy, In, const Array&) {
        return std::vector<Array>{dy, Array()};
      }};
  CustomOp whole = op;
  whole.source = "never built";
  const Array x = array({1.0f}), y = array({2.0f});
  const Array result = custom_op(whole, std::vector<Array>{x, y}, x.shape());
  EXPECT_NO_THROW(gradients(sum(result), std::vector<Array>{x}));
  EXPECT_ERROR(gradients(sum(result), std::vector<Array>{y}), ArgumentError,
               "half_done: has no gradient for input 1, f32 [1]");
}

// The names of the functions that the public headers of ops declare.
std::set<std::string> public_ops() {
  std::set<std::string> names;
  const std::regex declaration(
      R"(^(?:inline )?(?:const )?(?:Array|std::vector<Array>|SortResult|PoolResult|LstmResult|GruResult) (operator.|\w+)\()");
  for (const SourceFile& file : source_files({"include/samebytes/ops"}, {".h"}))
    for (const std::string& line : lines_of(file.text)) {
      std::smatch found;
      if (std::regex_search(line, found, declaration)) names.insert(found[1]);
    }
  return names;
}

TEST(SecondDerivativesTables, name_every_public_op_once_and_the_document_names_those_that_refuse) {
  EngineOptions options;
  const Engine engine(options);
  std::set<std::string> tested{"batch_norm_train", "batch_norm_eval"}, refusing;
  for (const auto& cases : {pointwise_cases(), layout_cases(), reduction_cases(), loss_cases()})
    for (const Case& c : cases) tested.insert(c.op);
  const std::string document = read_text("docs/second_derivatives.md");
  for (const Refusal& refusal : refusals()) {
    refusing.insert(refusal.op);
    EXPECT_NE(document.find("`" + std::string(refusal.op) + "`"), std::string::npos) << refusal.op;
  }
  const std::set<std::string> ops = public_ops();
  EXPECT_GT(ops.size(), 120u);
  for (const std::string& name : ops)
    EXPECT_EQ(tested.count(name) + refusing.count(name) + kNoDerivative.count(name), 1u) << name;
  for (const std::set<std::string>& table : {tested, refusing, kNoDerivative})
    for (const std::string& name : table) EXPECT_EQ(ops.count(name), 1u) << name << " is no public op";
}

}  // namespace
}  // namespace samebytes::testing
