// Sizes that no array can have: every op that computes a size refuses them by name, and nothing wraps around.
#include <gtest/gtest.h>

#include <limits>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

class SizesTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(SizesTest);

constexpr std::int64_t kHuge = std::int64_t{1} << 40, kMost = std::numeric_limits<std::int64_t>::max();
constexpr int kMostInt = std::numeric_limits<int>::max();

TEST_P(SizesTest, of_pad_tile_and_repeat_are_refused_where_they_overflow) {
  const Array a = zeros({2, 3});
  const char* const kPad = "pad: the result may have at most 2^56 elements, src is f32 [2, 3]";
  EXPECT_ERROR((pad(a, {{0, 0}, {kMost, kMost}})), ArgumentError, kPad);
  EXPECT_ERROR((pad(a, {{0, 0}, {std::int64_t{1} << 62, std::int64_t{1} << 62}})), ArgumentError, kPad);
  EXPECT_THROW(pad(a, {{kHuge, 0}, {kHuge, 0}}), ArgumentError);
  EXPECT_THROW(pad(a, {{-1, 0}, {0, 0}}), ArgumentError);
  EXPECT_ERROR((tile(a, {kMost, 2})), ArgumentError,
               "tile: the result may have at most 2^56 elements, src is f32 [2, 3]");
  EXPECT_THROW(tile(a, {kHuge, kHuge}), ArgumentError);
  EXPECT_THROW(tile(a, {-1}), ArgumentError);
  EXPECT_ERROR((repeat_interleave(a, kMost, 1)), ArgumentError,
               "repeat_interleave: the result may have at most 2^56 elements, src is f32 [2, 3]");
  EXPECT_THROW(repeat_interleave(a, kHuge * 65536, 0), ArgumentError);
}

TEST_P(SizesTest, of_arrays_are_refused_where_they_overflow) {
  EXPECT_ERROR((zeros(Shape{kHuge, kHuge})), ArgumentError,
               "shape: expected at most 2^56 elements, got [1099511627776, 1099511627776]");
  EXPECT_THROW(broadcast_to(zeros({1, 1}), {kHuge, kHuge}), ArgumentError);
  EXPECT_THROW(zeros({kHuge, 1}) + zeros({kHuge}), ArgumentError);
  EXPECT_THROW(matmul(broadcast_to(zeros({1, 1}), {kHuge, 1}), broadcast_to(zeros({1, 1}), {1, kHuge})), ArgumentError);
  EXPECT_THROW(one_hot(broadcast_to(zeros({1}, i32), {kHuge}), 1 << 30), ArgumentError);
  EXPECT_THROW(reshape(zeros({2, 3}), {kHuge, kHuge, -1}), ArgumentError);
  EXPECT_THROW(reshape(zeros({2, 3}), {kMost, 2, -1}), ArgumentError);
  EXPECT_THROW(reshape(zeros({0}), {0, kMost, kMost, -1}), ArgumentError);
  EXPECT_THROW(uniform({kHuge, kHuge}), ArgumentError);
  const Array wide = broadcast_to(zeros({1}), {Shape::kMostElements});
  EXPECT_THROW(concat({wide, wide}, 0), ArgumentError);
  EXPECT_THROW(stack({wide, wide}), ArgumentError);
  EXPECT_THROW(split(zeros({4}), {kMost, kMost, 6}), ArgumentError);
}

TEST_P(SizesTest, of_arange_are_refused_where_they_overflow) {
  EXPECT_ERROR(
      arange(0, 1e300, 1), ArgumentError,
      ("arange: expected at most 2^56 elements, got 0, " + std::to_string(1e300).substr(0, 301) + ", 1").c_str());
  EXPECT_THROW(arange(-1e308, 1e308, 1e-300), ArgumentError);
  EXPECT_THROW(arange(0, 1e20, 1, f64), ArgumentError);
  EXPECT_EQ(arange(5, 0, 1).size(), 0);
}

TEST_P(SizesTest, of_convolutions_are_refused_where_they_overflow) {
  const Array image = zeros({1, 3, 3, 2}), weight = zeros({3, 3, 2, 2});
  EXPECT_THROW(conv2d(image, weight, {}, {.pad_h = kMostInt, .pad_w = kMostInt}), ArgumentError);
  EXPECT_THROW(conv2d(image, weight, {}, {.dilation_h = kMostInt}), ArgumentError);
  EXPECT_THROW(conv2d(image, weight, {}, {.pad_h = -1}), ArgumentError);
  const Array long_kernel = broadcast_to(zeros({1, 1, 1}), {std::int64_t{1} << 50, 1, 1});
  EXPECT_THROW(conv1d(zeros({1, 3, 1}), long_kernel, {}, {.dilation = kMostInt}), ArgumentError);
  EXPECT_THROW(conv_transpose1d(zeros({1, 3, 1}), long_kernel, {}, {.stride = kMostInt, .dilation = kMostInt}),
               ArgumentError);
  EXPECT_THROW(conv_transpose2d(image, weight, {}, {.stride_h = kMostInt, .stride_w = kMostInt}), ArgumentError);
}

TEST_P(SizesTest, of_poolings_and_resizes_are_refused_where_they_overflow) {
  const Array image = zeros({1, 3, 3, 2});
  EXPECT_THROW(max_pool2d(image, {.kernel_h = kMostInt, .kernel_w = 2, .pad_h = kMostInt}), ArgumentError);
  EXPECT_EQ(avg_pool2d(image, {.stride_h = kMostInt, .stride_w = kMostInt, .ceil_mode = true}).shape(),
            (Shape{1, 1, 1, 2}));
  const Array line = broadcast_to(zeros({1, 1, 1}), {1, std::int64_t{1} << 33, 1});
  EXPECT_THROW(max_pool1d(line), ArgumentError);
  EXPECT_THROW(adaptive_avg_pool2d(broadcast_to(zeros({1, 1, 1, 1}), {1 << 20, 3, 3, 1 << 20}), kMostInt, kMostInt),
               ArgumentError);
  EXPECT_THROW(
      resize(broadcast_to(zeros({1, 1, 1, 1}), {1 << 20, 1, 1, 1 << 20}), {.out_h = 1 << 20, .out_w = 1 << 20}),
      ArgumentError);
}

TEST_P(SizesTest, of_slices_do_not_overflow) {
  const Array a = arange(0, 5);
  EXPECT_EQ(slice(a, 0, 1, 5, kMost).to_vector<float>(), (std::vector<float>{1}));
  EXPECT_EQ(slice(a, 0, 4, -6, -kMost).to_vector<float>(), (std::vector<float>{4}));
  EXPECT_EQ(slice(a, 0, 4, -6, std::numeric_limits<std::int64_t>::min()).to_vector<float>(), (std::vector<float>{4}));
  EXPECT_EQ(split(a, kMost).size(), 1u);
}

TEST_P(SizesTest, of_what_no_machine_has_are_out_of_memory) {
  EXPECT_THROW(zeros({Shape::kMostElements}, f64).eval(), OutOfMemory);
  EXPECT_THROW(empty({Shape::kMostElements}, f64), OutOfMemory);
}

}  // namespace
}  // namespace samebytes::testing
