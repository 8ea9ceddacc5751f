// Reductions read views and narrow whole numbers where they are: no dense copy, whatever the strides, and results equal
// to those of the dense array within the rounding of a sum.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/node.h"
#include "reference/reduce.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using What = reference::Reduce;

class ReduceViewTest : public OnDevice {
 protected:
  std::uint64_t relayouts() { return engine().transfers().relayout_bytes; }
};
SAMEBYTES_ON_EVERY_DEVICE(ReduceViewTest);

Array reduced(const Array& a, const std::vector<int>& axes, What what) {
  const auto one = [&](auto f) {
    switch (axes.size()) {
      case 0: return f(std::initializer_list<int>{});
      case 1: return f({axes[0]});
      case 2: return f({axes[0], axes[1]});
      case 3: return f({axes[0], axes[1], axes[2]});
      default: return f({axes[0], axes[1], axes[2], axes[3]});
    }
  };
  return one([&](std::initializer_list<int> list) {
    return what == What::sum    ? sum(a, list)
           : what == What::mean ? mean(a, list)
           : what == What::max  ? max(a, list)
                                : min(a, list);
  });
}

std::vector<std::vector<int>> axes_of(int rank) {
  std::vector<std::vector<int>> all;
  for (int mask = 1; mask < 1 << rank; ++mask) {
    std::vector<int> axes;
    for (int i = 0; i < rank; ++i)
      if ((mask >> i & 1) != 0) axes.push_back(i);
    all.push_back(axes);
  }
  return all;
}

// Views of every kind of a [5, 4, 37] array.
std::vector<Array> views_of(const Array& a) {
  return {transpose(a, {2, 0, 1}),
          transpose(a, {0, 2, 1}),
          slice(a, 2, 3, 30),
          slice(a, 1, 1, 4, 2),
          slice(a, 2, 0, 37, 5),
          flip(a, {0}),
          flip(a, {1, 2}),
          broadcast_to(slice(a, 0, 1, 2), {6, 4, 37}),
          broadcast_to(slice(a, 1, 1, 2), {5, 7, 37}),
          broadcast_to(slice(a, 2, 1, 2), {5, 4, 19}),
          broadcast_to(slice(slice(a, 0, 4, 5), 2, 36, 37), {3, 4, 8}),
          broadcast_to(slice(transpose(a, {2, 1, 0}), 2, 2, 3), {37, 4, 33}),
          broadcast_to(unsqueeze(flip(transpose(a, {1, 0, 2}), {2}), 1), {4, 3, 5, 37})};
}

TEST_P(ReduceViewTest, agrees_with_the_reference_without_a_copy) {
  const std::vector<double> values = random_values(5 * 4 * 37, 3);
  for (const Dtype dtype : real_dtypes()) {
    const Array a = real_array(values, {5, 4, 37}, dtype);
    int place = 0;
    for (const Array& view : views_of(a)) {
      const std::vector<double> dense = contiguous(view + 0.0).to_vector<double>();
      for (const std::vector<int>& axes : axes_of(view.shape().rank()))
        for (const What what : {What::sum, What::mean, What::max, What::min}) {
          const std::uint64_t before = relayouts();
          const Array y = reduced(view, axes, what).eval();
          EXPECT_EQ(relayouts(), before);
          EXPECT_TRUE(y.node()->is_dense());
          ASSERT_TRUE(
              all_close(y, reference::reduce(dense, view.shape(), axes, what), sum_tolerance(dtype, view.size())))
              << "view " << place << " " << view.shape().to_string() << " axes " << axes.size() << " from " << axes[0]
              << " what " << static_cast<int>(what);
        }
      ++place;
    }
  }
}

TEST_P(ReduceViewTest, long_views_go_in_parts) {
  for (const Shape& shape : {Shape{40009, 3}, Shape{3, 40009}, Shape{300, 700}, Shape{1, 90001}}) {
    const std::vector<double> values = random_values(shape.size(), 4);
    for (const Dtype dtype : real_dtypes()) {
      const Array a = transpose(real_array(values, shape, dtype)), b = slice(a, 0, 0, shape[1], 2);
      for (const Array& view : {a, b}) {
        const std::vector<double> dense = (view + 0.0).to_vector<double>();
        for (const std::vector<int>& axes : axes_of(2)) {
          EXPECT_TRUE(all_close(reduced(view, axes, What::sum), reference::reduce(dense, view.shape(), axes, What::sum),
                                sum_tolerance(dtype, view.size())))
              << shape.to_string();
          EXPECT_TRUE(
              all_close(reduced(view, axes, What::max), reference::reduce(dense, view.shape(), axes, What::max), 0));
        }
      }
    }
  }
}

TEST_P(ReduceViewTest, of_16_bit_views_round_once) {
  const std::vector<double> values = random_values(37 * 50, 5, 0, 1);
  for (const Dtype dtype : {f16, bf16}) {
    const Array a = astype(real_array(values, {37, 50}, f32), dtype), view = transpose(a);
    const std::uint64_t before = relayouts();
    EXPECT_TRUE(
        same_bytes(sum(view, {1}), astype(sum(astype(contiguous(view), f32), {1}), dtype)) ||
        all_close(sum(view, {1}), astype(sum(astype(contiguous(view), f32), {1}), dtype).to_vector<double>(), 0x1p-7));
    EXPECT_TRUE(
        all_close(mean(broadcast_to(slice(a, 0, 0, 1), {9, 50})), mean(slice(a, 0, 0, 1)).to_vector<double>(), 0x1p-8));
    EXPECT_EQ(max(view, {0}).to_vector<float>(), max(a, {1}).to_vector<float>());
    EXPECT_EQ(relayouts(), before);
  }
}

TEST_P(ReduceViewTest, nan_wins_and_infinities_stay) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const Array a = array({1, nan, -inf, 2, 3, inf}, {2, 3}), view = transpose(a);
  EXPECT_TRUE(all_close(max(view, {1}), std::vector<double>{2, nan, inf}, 0));
  EXPECT_TRUE(all_close(min(view, {1}), std::vector<double>{1, nan, -inf}, 0));
  EXPECT_TRUE(all_close(max(broadcast_to(a, {4, 2, 3}), {0, 1}), std::vector<double>{2, nan, inf}, 0));
  EXPECT_TRUE(all_close(sum(broadcast_to(a, {4, 2, 3}), {0}), std::vector<double>{4, nan, -inf, 8, 12, inf}, 0));
}

TEST_P(ReduceViewTest, a_sum_over_equal_values_is_a_product_and_needs_no_memory) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  const Array x = array({1, -3, 0.25f}).eval();
  const std::size_t before = engine().memory().live_bytes;
  const Array wide = broadcast_to(x, {kHuge, 3});
  EXPECT_EQ(sum(wide, {0}).to_vector<float>(), (std::vector<float>{0x1p40f, -3 * 0x1p40f, 0x1p38f}));
  EXPECT_EQ(mean(wide, {0}).to_vector<float>(), (std::vector<float>{1, -3, 0.25f}));
  EXPECT_EQ(max(wide).value(), 1);
  EXPECT_EQ(min(wide).value(), -3);
  EXPECT_EQ(sum(wide).value(), -1.75 * 0x1p40);
  EXPECT_EQ(sum_of_squares(wide).value(), 10.0625 * 0x1p40);
  EXPECT_EQ(sum(broadcast_to(ones({1}), {49})).value(), 49);
  EXPECT_EQ(gradients(sum(wide), std::vector<Array>{x})[0].to_vector<float>(), (std::vector<float>(3, 0x1p40f)));
  EXPECT_LT(engine().memory().live_bytes, before + (1 << 20));
}

TEST_P(ReduceViewTest, whole_numbers_wrap_around_over_equal_values_as_a_sum_does) {
  const Array x = array(std::vector<std::int32_t>{3, -7}, {2});
  constexpr std::int64_t kTimes = (std::int64_t{1} << 32) + 5;
  EXPECT_EQ(sum(broadcast_to(x, {kTimes, 2}), {0}).to_vector<std::int32_t>(), (std::vector<std::int32_t>{15, -35}));
  EXPECT_EQ(max(broadcast_to(x, {kTimes, 2}), {0}).to_vector<std::int32_t>(), (std::vector<std::int32_t>{3, -7}));
}

TEST_P(ReduceViewTest, narrow_whole_numbers_are_read_in_place) {
  std::vector<std::uint8_t> values;
  for (const double v : random_values(83 * 1009, 7, 0, 256)) values.push_back(static_cast<std::uint8_t>(v));
  const Shape shape{83, 1009};
  const std::vector<double> wide(values.begin(), values.end());
  const Array a = array(values, shape);
  for (const std::vector<int>& axes : axes_of(2))
    for (const What what : {What::sum, What::mean, What::max, What::min})
      for (const bool turned : {false, true}) {
        const Array view = turned ? flip(a, {1}) : a;
        const std::vector<double> dense = turned ? astype(view, f32).to_vector<double>() : wide;
        const Array y = reduced(view, axes, what);
        EXPECT_EQ(y.dtype(), what == What::sum ? i32 : what == What::mean ? f32 : u8);
        EXPECT_TRUE(all_close(y, reference::reduce(dense, shape, axes, what),
                              what == What::mean ? sum_tolerance(f32, shape.size()) : 0));
      }
  const Array truth = greater(a, full({}, 99, u8));
  EXPECT_EQ(sum(truth).dtype(), i32);
  EXPECT_EQ(sum(truth).value(), std::count_if(values.begin(), values.end(), [](int v) { return v > 99; }));
  EXPECT_EQ(max(truth).dtype(), bool_);
  const Array numbers = astype(a, i32);
  EXPECT_TRUE(all_close(mean(transpose(numbers), {0}), reference::reduce(wide, shape, {1}, What::mean),
                        sum_tolerance(f32, 1009)));
  EXPECT_TRUE(all_close(sum(transpose(numbers), {0}), reference::reduce(wide, shape, {1}, What::sum), 0));
}

TEST_P(ReduceViewTest, narrow_whole_numbers_take_no_memory_beside_their_own) {
  const auto own = make_engine(GetParam());
  const EngineScope scope(*own);
  constexpr std::int64_t kCount = 1 << 22;
  const Array a = array(std::vector<std::uint8_t>(kCount, 3), {kCount});
  EXPECT_EQ(sum(a).value(), 3.0 * kCount);
  EXPECT_EQ(mean(a).value(), 3);
  EXPECT_EQ(max(a).value(), 3);
  EXPECT_LT(own->memory().peak_bytes, std::size_t{kCount} * 3 / 2);
}

TEST_P(ReduceViewTest, more_axes_than_the_kernel_takes_are_made_dense) {
  const Array a = real_array(random_values(6561, 2), {3, 3, 3, 3, 3, 3, 3, 3}, f32);
  Array view = a;
  for (int axis = 0; axis < 8; ++axis) view = slice(view, axis, 0, 2);
  EXPECT_NEAR(sum(view).value(), sum(contiguous(view)).value(), 1e-4);
  const std::vector<float> kept = sum(view, {7}).to_vector<float>(),
                           want = sum(contiguous(view), {7}).to_vector<float>();
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_NEAR(kept[i], want[i], 1e-6);
}

TEST_P(ReduceViewTest, gradients_of_reductions_of_views_match_central_differences) {
  SAMEBYTES_NEEDS_F64();
  using In = std::span<const Array>;
  const auto check = [](const ArrayFunction& f) { EXPECT_TRUE(check_gradients(f, {random_input("x", {3, 4})})); };
  check([](In x) { return square(sum(transpose(x[0]), {0})); });
  check([](In x) { return square(mean(broadcast_to(x[0], {5, 3, 4}), {0, 2})); });
  check([](In x) { return max(flip(x[0], {1}), {1}); });
  check([](In x) { return sum_of_squares(slice(x[0], 1, 0, 4, 2)); });
}

}  // namespace
}  // namespace samebytes::testing
