// Pooling of every form and number of axes, the way back, interpolation and windows, as layers against their ops and,
// end to end, against plain loops in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class PoolLayersTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(PoolLayersTest);

struct Window {
  std::int64_t kernel, stride, pad, pad_end, dilation;
};

// Largest values and means that count the padding of windows along the middle axis of [N, L, C].
std::pair<std::vector<double>, std::vector<double>> pooled(const std::vector<double>& x, std::int64_t n,
                                                           std::int64_t length, std::int64_t channels,
                                                           const Window& w) {
  std::pair<std::vector<double>, std::vector<double>> result;
  const std::int64_t out = (length + w.pad + w.pad_end - w.dilation * (w.kernel - 1) - 1) / w.stride + 1;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t o = 0; o < out; ++o)
      for (std::int64_t c = 0; c < channels; ++c) {
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
        for (std::int64_t t = 0; t < w.kernel; ++t) {
          const std::int64_t at = o * w.stride - w.pad + t * w.dilation;
          if (at < 0 || at >= length) continue;
          const double value = x[static_cast<std::size_t>((i * length + at) * channels + c)];
          largest = std::max(largest, value);
          sum += value;
        }
        result.first.push_back(largest);
        result.second.push_back(sum / static_cast<double>(w.kernel));
      }
  return result;
}

TEST_P(PoolLayersTest, windows_with_gaps_and_uneven_sides_agree_with_plain_loops) {
  const std::vector<double> values = random_values(2 * 11 * 3);
  const Array x = real_array(values, {2, 11, 3}, f32);
  const Window window{.kernel = 3, .stride = 2, .pad = 1, .pad_end = 2, .dilation = 2};
  const auto [largest, means] = pooled(values, 2, 11, 3, window);
  nn::MaxPool1d most({.kernel = 3, .stride = 2, .pad = 1, .dilation = 2, .pad_end = 2});
  nn::AvgPool1d mean({.kernel = 3, .stride = 2, .pad = 1, .dilation = 2, .pad_end = 2});
  EXPECT_TRUE(all_close(most(x), largest, 1e-6));
  EXPECT_TRUE(all_close(mean(x), means, 1e-6));
  // The same windows along one axis of an image and of a volume.
  const Array image = reshape(x, {2, 11, 1, 3}), volume = reshape(x, {2, 1, 11, 1, 3});
  nn::MaxPool2d most2(
      {.kernel = {3, 1}, .stride = {2, 1}, .pad = {1, 0}, .dilation = {2, 1}, .pad_end = nn::Size2(2, 0)});
  nn::AvgPool3d mean3({.kernel = {1, 3, 1},
                       .stride = {1, 2, 1},
                       .pad = {0, 1, 0},
                       .dilation = {1, 2, 1},
                       .pad_end = nn::Size3(0, 2, 0)});
  EXPECT_TRUE(all_close(most2(image), largest, 1e-6));
  EXPECT_TRUE(all_close(mean3(volume), means, 1e-6));
  EXPECT_EQ(most.describe(), "MaxPool1d(3, stride=2, pad=1, pad_end=2, dilation=2)");
  EXPECT_EQ(most2.describe(), "MaxPool2d((3, 1), stride=(2, 1), pad=(1, 0), pad_end=(2, 0), dilation=(2, 1))");
}

TEST_P(PoolLayersTest, layers_are_their_ops) {
  const Array line = uniform({2, 9, 3}, -1, 1), image = uniform({2, 7, 6, 3}, -1, 1),
              volume = uniform({1, 5, 6, 4, 2}, -1, 1);
  eval({line, image, volume});
  EXPECT_TRUE(same_bytes(nn::AvgPool1d({.kernel = 4, .stride = 3, .divisor = 5})(line),
                         avg_pool1d(line, {.kernel = 4, .stride = 3, .divisor = 5})));
  EXPECT_TRUE(same_bytes(nn::AvgPool2d({.kernel = 2, .ceil_mode = true, .count_include_pad = false})(image),
                         avg_pool2d(image, {.ceil_mode = true, .count_include_pad = false})));
  EXPECT_TRUE(same_bytes(
      nn::MaxPool3d({.kernel = {2, 3, 2}, .stride = 1, .pad = 1})(volume),
      max_pool3d(volume,
                 {.kernel_h = 3, .stride_d = 1, .stride_h = 1, .stride_w = 1, .pad_d = 1, .pad_h = 1, .pad_w = 1})));
  EXPECT_TRUE(same_bytes(nn::LpPool1d({.p = 3, .kernel = 3})(line), lp_pool1d(line, 3, {.kernel = 3})));
  EXPECT_TRUE(same_bytes(nn::LpPool2d({.kernel = {2, 3}})(image), lp_pool2d(image, 2, {.kernel_w = 3})));
  EXPECT_TRUE(same_bytes(nn::LpPool3d({.p = 1.5})(volume), lp_pool3d(volume, 1.5)));
  EXPECT_TRUE(same_bytes(nn::AdaptiveAvgPool3d({2, 3, 4})(volume), adaptive_avg_pool3d(volume, 2, 3, 4)));
  EXPECT_TRUE(same_bytes(nn::AdaptiveMaxPool3d(2)(volume), adaptive_max_pool3d(volume, 2, 2, 2)));
  EXPECT_TRUE(all_close(nn::GlobalAvgPool3d()(volume), mean(volume, {1, 2, 3}).to_vector<double>(), 1e-6));
  EXPECT_EQ(nn::LpPool2d({.p = 1.5, .kernel = {2, 3}, .stride = 1}).describe(), "LpPool2d((2, 3), stride=1, p=1.5)");
  EXPECT_EQ(nn::AvgPool3d({.kernel = 2, .divisor = 3}).describe(), "AvgPool3d(2, divisor=3)");
  EXPECT_EQ(nn::AdaptiveMaxPool3d({1, 2, 3}).describe(), "AdaptiveMaxPool3d((1, 2, 3))");
  EXPECT_ERROR(nn::GlobalAvgPool3d()(image), ArgumentError,
               "GlobalAvgPool3d: x must be [N, D, H, W, C], it is [2, 7, 6, 3]");
}

TEST_P(PoolLayersTest, what_pooling_took_unpooling_puts_back) {
  const Array line = uniform({2, 9, 3}, -1, 1), image = uniform({2, 7, 6, 3}, -1, 1),
              volume = uniform({1, 4, 6, 4, 2}, -1, 1);
  eval({line, image, volume});
  nn::MaxPool1d pool1({.kernel = 3});
  const auto [most1, places1] = pool1.with_indices(line);
  EXPECT_TRUE(same_bytes(most1, pool1(line)));
  const Array back1 = nn::MaxUnpool1d({.kernel = 3})(most1, places1);
  EXPECT_EQ(back1.shape(), line.shape());
  EXPECT_TRUE(all(logical_or(back1 == line, back1 == 0)).value());
  EXPECT_TRUE(all_close(sum(back1, 1), sum(most1, 1).to_vector<double>(), 1e-6));
  nn::MaxPool2d pool2({.kernel = 2});
  const auto [most2, places2] = pool2.with_indices(image);
  EXPECT_TRUE(same_bytes(nn::MaxUnpool2d({.kernel = 2})(most2, places2), max_unpool2d(most2, places2, 6, 6)));
  nn::MaxUnpool2d odd({.kernel = 2, .size = {7, 6}});
  EXPECT_TRUE(same_bytes(odd(most2, places2), max_unpool2d(most2, places2, 7, 6)));
  EXPECT_EQ(odd.describe(), "MaxUnpool2d(2, size=(7, 6))");
  nn::MaxPool3d pool3({.kernel = 2});
  const auto [most3, places3] = pool3.with_indices(volume);
  EXPECT_TRUE(same_bytes(nn::MaxUnpool3d({.kernel = 2})(most3, places3), max_unpool3d(most3, places3, 4, 6, 4)));
  EXPECT_ERROR(odd(most2), ArgumentError,
               "MaxUnpool2d(2, size=(7, 6)): takes several inputs, got 1; call it with all of them: net(a, b)");
  EXPECT_ERROR(odd(most2, places2, places2), ArgumentError,
               "MaxUnpool2d: takes the values and their indices, got 3 arrays");
  EXPECT_ERROR(odd(most1, places1), ArgumentError, "MaxUnpool2d: x must be [N, H, W, C], it is [2, 3, 3]");
}

TEST_P(PoolLayersTest, interpolation_takes_every_mode_and_number_of_axes) {
  const Array line = uniform({2, 5, 3}, -1, 1), image = uniform({1, 5, 4, 2}, -1, 1),
              volume = uniform({1, 2, 3, 2, 2}, -1, 1);
  eval({line, image, volume});
  nn::Interpolate cubic({.scale = {2, 1.5}, .mode = InterpolateMode::cubic, .antialias = true});
  EXPECT_TRUE(same_bytes(cubic(image), interpolate(image, cubic.options())));
  EXPECT_EQ(cubic(image).shape(), (Shape{1, 10, 6, 2}));
  EXPECT_EQ(cubic.describe(), "Interpolate(scale=(2, 1.5), mode=cubic, antialias=true)");
  nn::Interpolate linear({.size = {7}, .mode = InterpolateMode::linear, .align_corners = true});
  EXPECT_TRUE(same_bytes(linear(line), interpolate(line, linear.options())));
  EXPECT_EQ(linear.describe(), "Interpolate(size=(7), mode=linear, align_corners=true)");
  EXPECT_EQ(nn::Interpolate({.scale = {2}})(volume).shape(), (Shape{1, 4, 6, 4, 2}));
  EXPECT_ERROR(nn::Interpolate({.size = {2}, .scale = {2}}), ArgumentError,
               "Interpolate: expected either sizes of at least 1 or scales above 0, got size (2) and scale (2)");
  EXPECT_ERROR(nn::Interpolate({.size = {0}}), ArgumentError,
               "Interpolate: expected either sizes of at least 1 or scales above 0, got size (0) and scale ()");
  EXPECT_ERROR(nn::Interpolate({.scale = {2}, .mode = InterpolateMode::area, .antialias = true}), ArgumentError,
               "Interpolate: align_corners and antialias need mode linear or cubic, got area");
}

TEST_P(PoolLayersTest, fold_adds_up_what_unfold_laid_out) {
  const Array image = uniform({2, 5, 4, 3}, -1, 1);
  image.eval();
  nn::Unfold unfold({.kernel = {3, 2}, .stride = {1, 2}, .pad = {1, 0}});
  EXPECT_EQ(unfold.describe(), "Unfold(kernel=(3, 2), stride=(1, 2), pad=(1, 0))");
  nn::Fold fold({5, 4}, unfold.options());
  EXPECT_EQ(fold.describe(), "Fold(kernel=(3, 2), stride=(1, 2), pad=(1, 0), sizes=(5, 4))");
  const Array times = fold(unfold(ones({2, 5, 4, 3})));
  EXPECT_TRUE(all_close(fold(unfold(image)), (image * times).to_vector<double>(), 1e-6));
}

TEST_P(PoolLayersTest, gradients_are_the_numerical_ones) {
  SAMEBYTES_NEEDS_F64();
  nn::MaxPool1d most({.kernel = 2, .pad = 1, .dilation = 2, .pad_end = 0});
  nn::AvgPool3d mean({.kernel = {1, 2, 2}, .stride = 1, .pad = {0, 1, 0}, .divisor = 3});
  nn::LpPool2d power({.p = 3, .kernel = {2, 1}});
  nn::MaxPool2d pool({.kernel = 2});
  nn::MaxUnpool2d unpool({.kernel = 2});
  nn::Interpolate cubic({.size = {5, 3}, .mode = InterpolateMode::cubic});
  EXPECT_TRUE(check_gradients([&](auto x) { return most(x[0]); }, {random_input("x", {2, 5, 2})}));
  EXPECT_TRUE(check_gradients([&](auto x) { return mean(x[0]); }, {random_input("x", {1, 2, 3, 3, 2})}));
  EXPECT_TRUE(check_gradients([&](auto x) { return power(x[0]); }, {random_input("x", {1, 4, 3, 2})}));
  EXPECT_TRUE(check_gradients(
      [&](auto x) {
        const auto [values, indices] = pool.with_indices(x[0]);
        return unpool(values, indices);
      },
      {random_input("x", {1, 4, 4, 2})}));
  EXPECT_TRUE(check_gradients([&](auto x) { return cubic(x[0]); }, {random_input("x", {1, 3, 4, 2})}));
}

TEST_P(PoolLayersTest, an_encoder_with_indices_and_its_decoder_train) {
  class Net final : public nn::Module {
   public:
    Array forward(const Array& x) override {
      const auto [values, indices] = pool_.with_indices(in_(x));
      return out_(unpool_(values, indices));
    }
    void visit(nn::Visitor& v) override {
      v.child("in", in_);
      v.child("pool", pool_);
      v.child("unpool", unpool_);
      v.child("out", out_);
    }

   private:
    nn::Conv2d in_{{.in = 1, .out = 4, .kernel = 3, .pad = 1}}, out_{{.in = 4, .out = 1, .kernel = 3, .pad = 1}};
    nn::MaxPool2d pool_{{.kernel = 2}};
    nn::MaxUnpool2d unpool_{{.kernel = 2}};
  };
  Net net;
  const Array x = uniform({4, 6, 6, 1}, -1, 1);
  x.eval();
  optim::Adam adam(net.parameters(), {.rate = 0.02});
  const double before = mse_loss(net(x), x).value();
  for (int i = 0; i < 40; ++i) adam.step(mse_loss(net(x), x));
  EXPECT_LT(mse_loss(net(x), x).value(), 0.7 * before);
}

}  // namespace
}  // namespace samebytes::testing
