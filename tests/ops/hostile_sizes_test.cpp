// Attributes and sizes that only a mistake or a hostile file has: ops refuse by name what would overflow, divide by
// zero, read outside of an array or fill the host's memory with a table, and compute what is merely odd.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class HostileSizesTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(HostileSizesTest);

constexpr int kMostInt = std::numeric_limits<int>::max();
constexpr std::int64_t kHuge = std::int64_t{1} << 40, kWide = std::int64_t{1} << 31;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(),
                       kLeast = std::numeric_limits<std::int64_t>::min();
constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

// A zero that stands for an array of this shape.
Array stretched(const Shape& shape) {
  Shape one;
  for (int i = 0; i < shape.rank(); ++i) one.push_back(1);
  return broadcast_to(zeros(one), shape);
}

TEST_P(HostileSizesTest, options_of_convolutions) {
  const Array image = zeros({1, 3, 3, 2}), weight = zeros({1, 1, 2, 2}), line = zeros({1, 3, 1});
  EXPECT_ERROR((conv2d(image, weight, {}, {.stride_w = kMostInt})), ArgumentError,
               "conv2d: stride_w must be below 2^28, got 2147483647");
  EXPECT_ERROR((conv2d(image, weight, {}, {.dilation_h = kMostInt})), ArgumentError,
               "conv2d: dilation_h must be below 2^28, got 2147483647");
  EXPECT_ERROR((conv1d(line, zeros({1, 1, 1}), {}, {.stride = 1 << 20, .pad_end = 1 << 30})), ArgumentError,
               "conv1d: pad_end must be below 2^28, got 1073741824");
  EXPECT_ERROR((conv_transpose1d(line, zeros({1, 1, 1}), {}, {.dilation = kMostInt})), ArgumentError,
               "conv_transpose1d: dilation must be below 2^28, got 2147483647");
}

TEST_P(HostileSizesTest, where_convolutions_reach) {
  const Array image = zeros({1, 3, 3, 2}), weight = zeros({1, 1, 2, 2});
  const std::string far =
      ": padding, strides and dilation must reach fewer than 2^28 places along an axis and 2^31 values in all, ";
  const std::string both = "src is f32 [1, 3, 3, 2], weight is f32 [1, 1, 2, 2]";
  EXPECT_ERROR((conv2d(image, weight, {}, {.stride_h = 1 << 27, .pad_h = 1 << 27})), ArgumentError,
               ("conv2d" + far + both).c_str());
  EXPECT_ERROR(
      (conv2d(image, weight, {}, {.stride_h = 1 << 16, .stride_w = 1 << 16, .pad_h = 1 << 16, .pad_w = 1 << 16})),
      ArgumentError, ("conv2d" + far + both).c_str());
  EXPECT_ERROR((conv2d(image, weight, {}, {.stride_h = 1 << 15, .dilation_h = 1 << 15})), ArgumentError,
               ("conv2d" + far + both).c_str());
  EXPECT_ERROR((conv_transpose1d(zeros({1, 3, 1}), zeros({1, 1, 1}), {}, {.stride = 1 << 27, .pad = 1 << 27})),
               ArgumentError, ("conv_transpose1d" + far + "src is f32 [1, 3, 1], weight is f32 [1, 1, 1]").c_str());
  const Array voxel = zeros({1, 1, 1, 1, 1});
  EXPECT_THROW(conv3d(voxel, voxel, {}, {.stride_d = 1 << 21, .stride_h = 1 << 21, .stride_w = 1 << 21}),
               ArgumentError);
  const Int8Weight bytes = int8_weight(ones({1, 1, 64, 4}));
  EXPECT_THROW(int8_conv2d(zeros({1, 3, 3, 64}), bytes, {}, {.stride_w = 1 << 26, .pad_w = 1 << 26}), ArgumentError);
  EXPECT_THROW(int8_conv2d(zeros({1, 3, 3, 64}), bytes, {}, {.dilation_w = kMostInt}), ArgumentError);
  // Few places far apart are no reason to refuse.
  const Array y = conv2d(ones({1, 3, 3, 2}), ones({1, 1, 2, 1}), {}, {.stride_h = 1 << 20, .pad_h = 1 << 20});
  EXPECT_EQ(y.shape(), (Shape{1, 3, 3, 1}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{0, 0, 0, 2, 2, 2, 0, 0, 0}));
}

TEST_P(HostileSizesTest, groups_of_weights_without_values) {
  const Array line = zeros({1, 3, 0}), weight = zeros({1, kHuge, 0});
  EXPECT_THROW(conv1d(line, weight, {}, {.groups = 1 << 27}), ArgumentError);
  EXPECT_THROW(conv_transpose1d(line, weight, {}, {.groups = 1 << 27}), ArgumentError);
}

TEST_P(HostileSizesTest, windows_of_poolings) {
  EXPECT_ERROR((max_pool2d(zeros({1, 1, 1, 128}), {.kernel_h = 9 << 27,
                                                   .kernel_w = 1 << 30,
                                                   .stride_h = kMostInt,
                                                   .stride_w = kMostInt,
                                                   .pad_h = 9 << 26,
                                                   .pad_w = 1 << 29})),
               ArgumentError,
               "max_pool2d: padded sides and windows must be below 2^30, and the places of a window below 2^31, src is "
               "f32 [1, 1, 1, 128]");
  EXPECT_THROW(
      max_pool2d(zeros({1, 1, 1, 1}), {.kernel_h = 1 << 16, .kernel_w = 1 << 16, .pad_h = 1 << 15, .pad_w = 1 << 15}),
      ArgumentError);
  EXPECT_THROW(max_pool1d(zeros({1, 3, 1}), {.kernel = 1, .stride = 1, .pad_end = kMostInt}), ArgumentError);
  EXPECT_THROW(adaptive_avg_pool2d(zeros({1, 1, 1, 1}), 1 << 16, 1 << 16), ArgumentError);
  EXPECT_THROW(adaptive_max_pool2d(stretched({1, 1 << 16, 1 << 16, 1}), 1, 1), ArgumentError);
  const Array mean =
      avg_pool2d(ones({1, 1, 1, 2}), {.kernel_h = 1 << 15, .kernel_w = 1 << 15, .pad_h = 1 << 14, .pad_w = 1 << 14});
  EXPECT_EQ(mean.to_vector<float>(), (std::vector<float>{0x1p-30F, 0x1p-30F}));
}

TEST_P(HostileSizesTest, tables_of_windows) {
  const Array voxel = zeros({1, 1, 1, 1, 1}), line = zeros({1, 3, 1});
  EXPECT_ERROR(
      (max_pool3d(voxel, {.kernel_d = 1 << 15, .kernel_h = 1, .kernel_w = 1, .stride_d = 1, .pad_d = (1 << 15) - 1})),
      ArgumentError, "max_pool3d: expected a table of at most 2^28 places, got 32768 x 32768");
  EXPECT_ERROR(adaptive_max_pool3d(voxel, kMostInt, 1, 1), ArgumentError,
               "adaptive_max_pool3d: expected a table of at most 2^28 places, got 2147483647 x 1");
  EXPECT_ERROR((unfold(line, {.kernel = {1 << 15}, .pad = {1 << 15}})), ArgumentError,
               "unfold: expected a table of at most 2^28 places, got 32772 x 32768");
  EXPECT_ERROR((unfold(line, {.pad = {kMostInt}})), ArgumentError, "unfold: pad must be below 2^30, got 2147483647");
  EXPECT_ERROR((fold(zeros({1, 1, 1, 1}), {kMost}, {})), ArgumentError,
               "fold: every axis must be below 2^30, got 9223372036854775807");
  EXPECT_THROW(fold(zeros({1, 1, 1, 1}), {kLeast}, {.kernel = {1 << 29}, .dilation = {1 << 29}}), ArgumentError);
  const std::vector<int> wide(3, 1 << 29), half(3, 1 << 28);
  EXPECT_THROW(fold(zeros({1, 1, 1, 1}), {1, 1, 1}, {.kernel = wide, .pad = half}), ArgumentError);
}

TEST_P(HostileSizesTest, tables_of_places) {
  EXPECT_ERROR((interpolate(zeros({1, 2, 1}), {.size = {1 << 29}, .mode = InterpolateMode::cubic})), ArgumentError,
               "interpolate: expected a table of at most 2^28 places, got 536870912 x 4");
  EXPECT_ERROR((interpolate(stretched({1, 1 << 30, 1}), {.size = {2}})), ArgumentError,
               "interpolate: every axis must be below 2^30, src is f32 [1, 1073741824, 1]");
  constexpr std::int64_t kPlaces = 1 << 15;  // all of which read the first one
  const auto n = static_cast<std::size_t>(kPlaces);
  const Array x = zeros({1, kPlaces, 1});
  const Array y = resample_axis(
      x, 1,
      {.in = kPlaces, .taps = 1, .places = std::vector<std::int32_t>(n, 0), .weights = std::vector<double>(n, 1.0)});
  EXPECT_THROW(gradients(sum(y), std::vector<Array>{x}), ArgumentError);
}

TEST_P(HostileSizesTest, results_of_unpooling) {
  const Array x = zeros({1, 3, 1}), indices = zeros({1, 3, 1}, i32);
  EXPECT_THROW(nn::MaxUnpool1d({.kernel = 2, .pad = 1 << 30})(x, indices), ArgumentError);
  EXPECT_ERROR(nn::MaxUnpool1d({.kernel = kMostInt})(x, indices), ArgumentError,
               "MaxUnpool: expected fewer than 2^31 places along each axis of the result, got 3 places and a step of "
               "2147483647");
}

TEST_P(HostileSizesTest, grids) {
  EXPECT_THROW(affine_grid(zeros({1, 2, 3}), {kHuge, kHuge}), ArgumentError);
  EXPECT_THROW(affine_grid(zeros({1, 3, 4}), {kWide, kWide, 4}), ArgumentError);
  EXPECT_ERROR((affine_grid(zeros({1, 2, 3}), {1 << 20, 1 << 10})), ArgumentError,
               "affine_grid: expected a table of at most 2^28 places, got 1073741824 x 3");
  EXPECT_ERROR(grid_sample(stretched({1, 1, (1 << 24) + 1, 1}), zeros({1, 1, 1, 2})), ArgumentError,
               "grid_sample: more than 2^24 places along an axis need f64, src is f32 [1, 1, 16777217, 1]");
}

TEST_P(HostileSizesTest, boxes) {
  const Array x = zeros({1, 4, 5, 3}), image = zeros({1}, i32), box = zeros({1, 4});
  EXPECT_THROW(roi_align(x, zeros({4, 4}), zeros({4}, i32), {.out_h = kMostInt, .out_w = kMostInt}), ArgumentError);
  EXPECT_ERROR((roi_align(x, box, image, {.sampling_ratio = 4097})), ArgumentError,
               "roi_align: expected a sampling_ratio of at most 4096, got 4097");
  EXPECT_ERROR((roi_align(x, box, image, {.out_h = 8, .out_w = 8, .sampling_ratio = 4096})), ArgumentError,
               "roi_align: expected a table of at most 2^28 places, got 64 x 67108864");
  EXPECT_ERROR((roi_align(x, array({0, 0, kInfinity, kInfinity}, {1, 4}), image, {.out_h = 64, .out_w = 64})),
               ArgumentError, "roi_align: expected a table of at most 2^28 places, got 4096 x 67108864");
  EXPECT_THROW(roi_align(x, box, image, {.out_h = kMostInt, .out_w = 1}), ArgumentError);
}

TEST_P(HostileSizesTest, weights_that_cannot_be_quantised) {
  std::vector<float> values(64);
  values[3] = kInfinity;
  EXPECT_ERROR(quantise(values, 64, QuantisedType::q8_0), ArgumentError,
               "quantise: expected finite values, got inf at place 3");
  values[3] = kNan;
  EXPECT_THROW(quantise(values, 64, QuantisedType::q4_0), ArgumentError);
  // The inverse of their scale is not finite.
  values[3] = 1000 * std::numeric_limits<float>::denorm_min();
  for (const QuantisedType type : {QuantisedType::q8_0, QuantisedType::q4_0, QuantisedType::nf4}) {
    const std::vector<std::byte> blocks = quantise(values, 64, type);
    std::vector<std::uint8_t> bytes;
    for (const std::byte b : blocks) bytes.push_back(std::to_integer<std::uint8_t>(b));
    const Array rows = array(bytes, {1, static_cast<std::int64_t>(bytes.size())});
    EXPECT_EQ(dequantise(rows, type).to_vector<float>(), std::vector<float>(64)) << format_of(type).name;
  }
  const Int8Weight tiny = int8_weight(array(std::vector<float>{values[3], 0, 0, 0}, {2, 2}));
  EXPECT_EQ(tiny.values().to_vector<float>(), std::vector<float>(4));
}

TEST_P(HostileSizesTest, offsets_of_attention) {
  const Array q = uniform({1, 3, 2, 4}, -1, 1), k = uniform({1, 5, 2, 4}, -1, 1), v = uniform({1, 5, 2, 4}, -1, 1);
  eval({q, k, v});
  const auto attend = [&](const AttentionOptions& options) { return scaled_dot_product_attention(q, k, v, options); };
  const auto seen = attend({}).to_vector<double>(), capped = attend({.soft_cap = 2}).to_vector<double>();
  const std::vector<double> none(seen.size());
  for (const std::int64_t offset : {std::int64_t{5}, kMost})
    EXPECT_TRUE(all_close(attend({.causal = true, .offset = offset}), seen, 1e-5)) << offset;
  EXPECT_TRUE(all_close(attend({.causal = true, .offset = kMost, .soft_cap = 2}), capped, 1e-5));
  for (const std::int64_t offset : {std::int64_t{-3}, kLeast}) {
    EXPECT_TRUE(all_close(attend({.causal = true, .offset = offset}), none, 0)) << offset;
    EXPECT_TRUE(all_close(attend({.causal = true, .offset = offset, .soft_cap = 2}), none, 0)) << offset;
  }
  const Array qkv = uniform({1, 3, 3, 4}, -1, 1);
  qkv.eval();
  EXPECT_TRUE(all_close(packed_attention(qkv, 1, {.causal = true, .offset = kMost}),
                        packed_attention(qkv, 1).to_vector<double>(), 1e-5));
  EXPECT_ERROR(rotary(zeros({1, 2, 1, 4}), {.offset = kMost}), ArgumentError,
               "rotary: offset must be at most 2^53, got 9223372036854775807");
}

TEST_P(HostileSizesTest, sizes_that_kernels_take_as_ints) {
  EXPECT_ERROR(layer_norm(stretched({1, kWide})), ArgumentError,
               "layer_norm: sizes must fit 31 bits, values of a row are 2147483648");
  EXPECT_THROW(rms_norm(stretched({1, kWide})), ArgumentError);
  EXPECT_THROW(rotary(stretched({1, 1, kWide, 2})), ArgumentError);
  EXPECT_ERROR((lstm(stretched({kWide, 1, 1}), {zeros({4, 1}), zeros({4, 1})})), ArgumentError,
               "lstm: sizes must fit 31 bits, sequences, steps and gates of all units are 2147483648, 1, 4");
  EXPECT_THROW(gru(stretched({1, kWide, 1}), {zeros({3, 1}), zeros({3, 1})}), ArgumentError);
  const Array key = zeros({1, 1, 1, 1});
  EXPECT_THROW(scaled_dot_product_attention(stretched({1, kWide, 1, 1}), key, key), ArgumentError);
  EXPECT_ERROR(int8_linear(stretched({kWide, 1}), int8_weight(ones({1, 1}))), ArgumentError,
               "int8_linear: sizes must fit 31 bits, rows and columns are 2147483648, 1");
}

TEST_P(HostileSizesTest, rows_of_nothing) {
  const std::vector<Array> inputs{zeros({3, 0}), zeros({0}), zeros({0})};
  const Array y = layer_norm(inputs[0], inputs[1], inputs[2]);
  EXPECT_EQ(y.wait().shape(), (Shape{3, 0}));
  const auto slopes = gradients(sum(y), inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) EXPECT_EQ(slopes[i].wait().shape(), inputs[i].shape());
  EXPECT_EQ(layer_norm(zeros({2, 0, 3}), {}, {}, 1e-5F, 1).wait().shape(), (Shape{2, 0, 3}));
  EXPECT_EQ(rms_norm(zeros({3, 0}), zeros({0})).wait().shape(), (Shape{3, 0}));
  EXPECT_EQ(rms_norm(zeros({3, 0}, f16)).wait().dtype(), f16);
}

TEST_P(HostileSizesTest, numbers_beyond_the_whole_ones) {
  const Array a = array({1e30F, -1e30F, kInfinity, kNan, -2.5F});
  constexpr std::int32_t kMostWhole = std::numeric_limits<std::int32_t>::max(),
                         kLeastWhole = std::numeric_limits<std::int32_t>::min();
  EXPECT_EQ(a.to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{kMostWhole, kLeastWhole, kMostWhole, kLeastWhole, -2}));
  EXPECT_EQ(a.to_vector<std::int64_t>(), (std::vector<std::int64_t>{kMost, kLeast, kMost, kLeast, -2}));
  EXPECT_EQ(a.to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{255, 0, 255, 0, 0}));
  EXPECT_ERROR((zeros({2}, u8) + std::numeric_limits<std::uint64_t>::max()), ArgumentError,
               "add: the number must fit u8, got 18446744073709551616; convert a with astype(a, f64), a is u8 [2]");
}

TEST_P(HostileSizesTest, many_arrays_of_einsum) {
  std::string equation = "i";
  for (int i = 0; i < 64; ++i) equation += ",i";
  EXPECT_ERROR(einsum(equation, std::vector<Array>(65, zeros({2}))), ArgumentError,
               "einsum: expected at most 64 arrays, got 65");
  EXPECT_EQ(einsum(equation.substr(2) + "->", std::vector<Array>(64, ones({2}))).to_vector<float>(),
            (std::vector<float>{2}));
}

}  // namespace
}  // namespace samebytes::testing
