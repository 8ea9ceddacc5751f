// What moves elements: slices with steps, flip, split, stack, tile, repeat_interleave, roll, pad, against plain index
// arithmetic, their gradients numerically.
#include <gtest/gtest.h>

#include <functional>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

class LayoutTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(LayoutTest);

Array counted(const Shape& shape) { return reshape(arange(0, static_cast<double>(shape.size())), shape); }

// Element (i0, i1, ..) of the result is element from(axis, i) of a; -1 takes `fill`.
std::vector<double> gathered(const Array& a, const Shape& shape, double fill,
                             const std::function<std::int64_t(int, std::int64_t)>& from) {
  const std::vector<double> values = a.to_vector<double>();
  std::vector<double> result;
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    std::int64_t rest = i, place = 0, step = 1;
    bool inside = true;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const std::int64_t at = from(axis, rest % shape[axis]);
      inside = inside && at >= 0;
      place += at * step;
      rest /= shape[axis];
      step *= a.shape()[axis];
    }
    result.push_back(inside ? values[static_cast<std::size_t>(place)] : fill);
  }
  return result;
}

TEST_P(LayoutTest, slices_count_as_numpy_does) {
  const Array a = counted({7, 3});
  const auto check = [&](std::int64_t start, std::int64_t stop, std::int64_t step, std::vector<std::int64_t> rows) {
    const Array came = slice(a, 0, start, stop, step);
    ASSERT_EQ(came.shape(), (Shape{static_cast<std::int64_t>(rows.size()), 3}));
    EXPECT_TRUE(
        all_close(came,
                  gathered(a, came.shape(), 0,
                           [&](int axis, std::int64_t i) { return axis == 0 ? rows[static_cast<std::size_t>(i)] : i; }),
                  0));
  };
  check(-5, -1, 2, {2, 4});
  check(5, 1, -1, {5, 4, 3, 2});
  check(6, -8, -1, {6, 5, 4, 3, 2, 1, 0});
  check(-1, -8, -3, {6, 3, 0});
  check(-2, 0, -2, {5, 3, 1});
  check(3, 3, -1, {});
  check(7, 7, 1, {});
  check(-100, 100, 3, {0, 3, 6});  // bounds outside are clamped
  check(100, -100, -3, {6, 3, 0});
  check(5, 2, 1, {});
  check(2, 5, -1, {});
  EXPECT_TRUE(all_close(matmul(flip(a, {0, 1}), full({3, 1}, 1)), std::vector<double>{57, 48, 39, 30, 21, 12, 3}, 0));
}

TEST_P(LayoutTest, flip_reverses_axes) {
  const Array a = counted({2, 3, 5});
  const std::int64_t sizes[] = {2, 3, 5};
  EXPECT_TRUE(all_close(
      flip(a, {0, -1}),
      gathered(a, a.shape(), 0, [&](int axis, std::int64_t i) { return axis == 1 ? i : sizes[axis] - 1 - i; }), 0));
  EXPECT_TRUE(all_close(flip(flip(a, {1}), {1}), a.to_vector<double>(), 0));
  EXPECT_EQ(flip(zeros({0, 2}), {0}).shape(), (Shape{0, 2}));
  for (const Dtype dtype : {f32, f16, bf16, i32, u8, bool_})  // rows of several vectors and a rest
    for (const Shape& shape : {Shape{3, 37}, Shape{1, 16}, Shape{5, 2049}}) {
      const Array b = astype(counted(shape) - 20.0, dtype);
      const auto from = [&](int axis, std::int64_t i) { return axis == 0 ? i : shape[1] - 1 - i; };
      EXPECT_TRUE(all_close(contiguous(flip(b, {1})), gathered(b, shape, 0, from), 0)) << shape.to_string();
    }
}

TEST_P(LayoutTest, split_and_stack_are_inverse) {
  const Array a = counted({7, 3});
  const auto parts = split(a, 3);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[2].shape(), (Shape{1, 3}));
  EXPECT_TRUE(same_bytes(concat(parts, 0), a));
  const auto columns = split(a, {1, 0, 2}, -1);
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_EQ(columns[1].shape(), (Shape{7, 0}));
  EXPECT_TRUE(same_bytes(concat(columns, 1), a));
  std::vector<Array> rows;
  for (const Array& row : split(a, 1)) rows.push_back(squeeze(row, 0));
  EXPECT_TRUE(same_bytes(stack(rows), a));
  EXPECT_TRUE(same_bytes(stack(rows, -1), contiguous(transpose(a))));
  EXPECT_EQ(split(zeros({0, 3}), 2).size(), 1u);
}

// Rows of more than one block, and blocks that the row does not fill.
TEST_P(LayoutTest, transposed_arrays_are_copied_and_read_by_pointwise_ops) {
  for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{70, 33}, {33, 130}, {64, 64}, {17, 5}}) {
    const Array a = counted({2, rows, columns});
    const std::vector<float> moved = contiguous(transpose(a)).to_vector<float>(),
                             more = (transpose(a) + transpose(a, {0, 2, 1}) * 2.0).to_vector<float>();
    for (std::int64_t i = 0; i < 2 * rows * columns; ++i) {
      const std::int64_t k = i / (rows * columns), j = i % (rows * columns) / rows, row = i % rows;
      const auto expected = static_cast<float>((k * rows + row) * columns + j);
      ASSERT_EQ(moved[static_cast<std::size_t>(i)], expected) << i;
      ASSERT_EQ(more[static_cast<std::size_t>(i)], 3 * expected) << i;
    }
  }
}

// The turned axis is the first, a middle or the last of the outer ones; other operands are read as they lie.
TEST_P(LayoutTest, axes_moved_to_the_end_are_copied_and_read_by_pointwise_ops) {
  for (const Shape& shape : {Shape{2, 5, 7, 20}, Shape{1, 16, 16, 16}, Shape{3, 3, 11, 33}, Shape{2, 50, 3, 17}})
    for (const auto& order :
         {std::vector<int>{0, 3, 1, 2}, std::vector<int>{3, 0, 1, 2}, std::vector<int>{0, 1, 3, 2}}) {
      const Array a = counted(shape), moved = transpose(a, order), dense = contiguous(moved);
      const std::int64_t steps[] = {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
      std::vector<double> want;
      for (std::int64_t i = 0; i < shape.size(); ++i) {
        std::int64_t rest = i, from = 0;
        for (int axis = 3; axis >= 0; --axis) {
          const std::int64_t n = moved.shape()[axis];
          from += rest % n * steps[order[static_cast<std::size_t>(axis)]];
          rest /= n;
        }
        want.push_back(static_cast<double>(from));
      }
      EXPECT_TRUE(all_close(dense, want, 0)) << shape.to_string() << " " << order[0];
      const Array line = counted({moved.shape()[3]}), sum = moved * 2.0 + dense + line;
      for (std::size_t i = 0; i < want.size(); ++i)
        want[i] = want[i] * 3 + static_cast<double>(static_cast<std::int64_t>(i) % moved.shape()[3]);
      EXPECT_TRUE(all_close(sum, want, 0)) << shape.to_string() << " " << order[0];
    }
}

TEST_P(LayoutTest, two_axes_are_padded_or_tiled_in_one_launch) {
  const Array a = real_array(random_values(2 * 5 * 4 * 3), {2, 5, 4, 3}, f32).wait();
  const auto launches = [&](const Array& y) {
    const auto before = engine().plans().launches;
    y.eval();
    return engine().plans().launches - before;
  };
  for (const PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::replicate, PadMode::circular}) {
    EXPECT_EQ(launches(pad(a, {{}, {2, 1}, {1, 3}, {}}, mode)), 1u);
    EXPECT_EQ(launches(pad(a, {{1, 0}, {}, {1, 3}, {}}, mode)), 1u);
  }
  EXPECT_EQ(launches(tile(a, {2, 1, 3, 2})), 1u);
  const auto modulo = [&](int axis, std::int64_t i) { return i % a.shape()[axis]; };
  EXPECT_TRUE(all_close(tile(a, {2, 1, 3, 2}), gathered(a, {4, 5, 12, 6}, 0, modulo), 0));
  EXPECT_TRUE(all_close(tile(a, {2, 3, 2, 2}), gathered(a, {4, 15, 8, 6}, 0, modulo), 0));
  EXPECT_EQ(tile(full({}, 3), {2, 2}).to_vector<float>(), (std::vector<float>(4, 3.0f)));
}

TEST_P(LayoutTest, tile_and_repeat_interleave_repeat) {
  const Array a = counted({2, 3});
  const auto modulo = [&](int axis, std::int64_t i) { return i % (axis == 0 ? 2 : 3); };
  EXPECT_TRUE(all_close(tile(a, {2, 3}), gathered(a, {4, 9}, 0, modulo), 0));
  EXPECT_TRUE(all_close(tile(a, {2}), gathered(a, {2, 6}, 0, modulo), 0));
  EXPECT_EQ(tile(a, {4, 1, 2}).shape(), (Shape{4, 2, 6}));
  EXPECT_EQ(tile(a, {0, 2}).shape(), (Shape{0, 6}));
  EXPECT_TRUE(all_close(repeat_interleave(a, 2, 1), std::vector<double>{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}, 0));
  EXPECT_TRUE(all_close(repeat_interleave(a, 2, 0), std::vector<double>{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}, 0));
}

TEST_P(LayoutTest, roll_turns_an_axis) {
  for (const std::int64_t shift : {1, -2, 12, 5}) {
    const Array a = counted({3, 5, 4});
    EXPECT_TRUE(all_close(
        roll(a, shift, 1),
        gathered(a, a.shape(), 0, [&](int axis, std::int64_t i) { return axis == 1 ? ((i - shift) % 5 + 5) % 5 : i; }),
        0));
  }
  const Array long_one = real_array(random_values(5003), {5003}, f32);
  EXPECT_TRUE(same_bytes(roll(roll(long_one, 1001, 0), -1001, 0), long_one));
}

std::int64_t place(PadMode mode, std::int64_t i, std::int64_t n) {
  if (i >= 0 && i < n) return i;
  switch (mode) {
    case PadMode::reflect: return i < 0 ? -i : 2 * (n - 1) - i;
    case PadMode::replicate: return i < 0 ? 0 : n - 1;
    case PadMode::circular: return (i + n) % n;
    default: return -1;
  }
}

TEST_P(LayoutTest, pad_continues_axes_in_every_mode) {
  struct Case {
    Shape shape;
    std::vector<PadWidth> widths;
  };
  const Case cases[] = {{{2, 5, 4, 3}, {{}, {2, 1}, {1, 3}, {}}},  // an image
                        {{4, 2, 5, 3}, {{1, 2}, {}, {3, 1}, {}}},  // an axis between the two
                        {{3, 2, 4, 17}, {{}, {0, 1}, {}, {2, 5}}},
                        {{3, 37}, {{}, {36, 20}}},      // rows longer than a vector, as wide as reflect takes
                        {{5, 1021}, {{1, 0}, {0, 7}}},  // several groups
                        {{2, 3, 19}, {{1, 1}, {2, 0}, {18, 18}}}};  // every axis
  for (const PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::replicate, PadMode::circular})
    for (const Case& at : cases) {
      const Array a = real_array(random_values(at.shape.size()), at.shape, f32);
      const Array came = pad(a, at.widths, mode, -2.5);
      EXPECT_TRUE(all_close(came,
                            gathered(a, came.shape(), -2.5,
                                     [&](int axis, std::int64_t i) {
                                       return place(mode, i - at.widths[static_cast<std::size_t>(axis)].before,
                                                    at.shape[axis]);
                                     }),
                            0))
          << at.shape.to_string() << " mode " << static_cast<int>(mode);
    }
  EXPECT_TRUE(all_close(pad(array({7}), {{3, 2}}, PadMode::replicate), std::vector<double>(6, 7.0), 0));
}

TEST_P(LayoutTest, pad_takes_every_dtype_and_empty_arrays) {
  for (const Dtype dtype : {f32, f16, bf16, i32, u8, bool_}) {
    const Array a = astype(array({1, 0}), dtype);
    EXPECT_EQ(pad(a, {{1, 2}}, PadMode::constant, 1).to_vector<float>(), (std::vector<float>{1, 1, 0, 1, 1}));
    EXPECT_EQ(pad(a, {{1, 0}}).to_vector<float>(), (std::vector<float>{0, 1, 0}));
    EXPECT_EQ(pad(a, {{1, 1}}, PadMode::circular).dtype(), dtype);
  }
  EXPECT_EQ(pad(zeros({0, 2}), {{1, 0}, {0, 1}}, PadMode::constant, 3).to_vector<float>(),
            (std::vector<float>{3, 3, 3}));
  const Array a = zeros({2});
  EXPECT_EQ(pad(a, {{0, 0}}).node(), a.node());
}

TEST_P(LayoutTest, gradients_agree_with_differences) {
  SAMEBYTES_NEEDS_F64();
  for (const PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::replicate, PadMode::circular}) {
    EXPECT_TRUE(check_gradients(
        [&](auto x) {
          return square(pad(x[0], {{1, 0}, {2, 3}, {}}, mode, 0.5));
        },
        {random_input("src", {2, 4, 3})}));
    EXPECT_TRUE(check_gradients(
        [&](auto x) {
          return square(pad(x[0], {{3, 1}, {}, {2, 4}}, mode)) * pad(square(x[0]), {{3, 1}, {}, {2, 4}}, mode);
        },
        {random_input("src", {4, 2, 5})}));
    EXPECT_TRUE(check_gradients(
        [&](auto x) {
          return square(pad(x[0], {{}, {18, 3}}, mode));
        },
        {random_input("src", {2, 19})}));
  }
  EXPECT_TRUE(check_gradients(
      [](auto x) {
        return concat({square(slice(x[0], 1, -1, -6, -2)), flip(x[0], {0, 1}) * x[0], roll(x[0], 2, 1),
                       tile(slice(x[0], 1, 1, 4, 2), {1, 2}), repeat_interleave(slice(x[0], 1, 3, 5), 3, 1),
                       square(split(x[0], {1, 3, 1}, 1)[1])},
                      1);
      },
      {random_input("src", {3, 5})}));
  EXPECT_TRUE(check_gradients(
      [](auto x) {
        return square(stack({x[0], x[1], x[0]}, 1));
      },
      {random_input("a", {2, 3}), random_input("b", {2, 3})}));
}

TEST_P(LayoutTest, gradients_of_slices_of_one_array_are_joined) {
  const Array a = real_array(random_values(3 * 7), {3, 7}, f32);
  const auto check = [&](const std::function<Array(const Array&)>& f, std::size_t launches, std::vector<double> row) {
    const Array d = gradients(sum(f(a)), {&a, 1})[0];
    const auto before = engine().plans().launches;
    std::vector<double> want;
    for (int i = 0; i < 3; ++i) want.insert(want.end(), row.begin(), row.end());
    EXPECT_TRUE(all_close(d, want, 0));
    EXPECT_LE(engine().plans().launches - before, launches);
  };
  const auto part = [](const Array& x, std::int64_t start, std::int64_t stop) { return slice(x, 1, start, stop); };
  // Ones, factors and a copy for each part; no sum of whole arrays.
  check(
      [](const Array& x) {
        const auto p = split(x, {2, 2, 3}, 1);
        return sum(p[0] * 2.0) + sum(p[1] * 3.0) + sum(p[2] * 4.0);
      },
      7, {2, 2, 3, 3, 4, 4, 4});
  check([&](const Array& x) { return sum(part(x, 5, 6) * 2.0) + sum(part(x, 1, 3) * 3.0); }, 6, {0, 3, 3, 0, 0, 2, 0});
  check([&](const Array& x) { return sum(part(x, 0, 4) * 2.0) + sum(part(x, 3, 7) * 3.0); }, 6, {2, 2, 2, 5, 3, 3, 3});
  if (!has_f64()) return;
  EXPECT_TRUE(check_gradients(
      [&](auto x) { return square(part(x[0], 4, 6)) * part(x[0], 1, 3) + part(x[0], 0, 2) * slice(x[0], 1, 6, 0, -3); },
      {random_input("src", {3, 7})}));
  EXPECT_TRUE(check_gradients(
      [&](auto x) {
        const Array once = gradients(sum(square(part(x[0], 4, 6)) * part(x[0], 1, 3)), {x.data(), 1})[0];
        return square(once) + once;
      },
      {random_input("src", {3, 7})}));
}

TEST_P(LayoutTest, sixteen_bit_gradients_keep_their_dtype) {
  const Array a = astype(array({1, 2, 3}), bf16);
  const Array d = gradients(sum(astype(pad(a, {{2, 0}}, PadMode::reflect), f32)), {&a, 1})[0];
  EXPECT_EQ(d.dtype(), bf16);
  EXPECT_EQ(d.to_vector<float>(), (std::vector<float>{1, 2, 2}));
}

TEST_P(LayoutTest, wrong_arguments_are_named) {
  const Array a = zeros({2, 3});
  EXPECT_ERROR(slice(a, 1, 0, 2, 0), ArgumentError, "slice: step must not be 0, src is f32 [2, 3]");
  EXPECT_ERROR(flip(a, {0, -2}), ArgumentError, "flip: axis 0 is named twice, src is f32 [2, 3]");
  EXPECT_ERROR(split(a, 0), ArgumentError, "split: the size must be at least 1, got 0, src is f32 [2, 3]");
  EXPECT_ERROR((split(a, {1, 3}, 1)), ArgumentError,
               "split: sizes must be 0 or more and add up to axis 1, got {1, 3}, src is f32 [2, 3]");
  EXPECT_ERROR((stack({a, zeros({3})})), ArgumentError,
               "stack: shapes must agree, array 0 is f32 [2, 3], array 1 is f32 [3]");
  EXPECT_ERROR(tile(a, {-1}), ArgumentError, "tile: repeats must be 0 or more, got -1, src is f32 [2, 3]");
  EXPECT_ERROR(roll(a, 1, 2), ArgumentError, "roll: axis 2 is out of range for src f32 [2, 3]");
  EXPECT_ERROR((pad(a, {{1, 1}})), ArgumentError, "pad: expected one width for each axis, got 1, src is f32 [2, 3]");
  EXPECT_ERROR((pad(a, {{}, {3, 0}}, PadMode::reflect)), ArgumentError,
               "pad: widths must be 0 or more and below the size of the axis, axis 1 has 3 and 0, src is f32 [2, 3]");
  EXPECT_ERROR((pad(a, {{}, {-1, 0}})), ArgumentError,
               "pad: widths must be 0 or more, axis 1 has -1 and 0, src is f32 [2, 3]");
  EXPECT_THROW(pad(Array(), {{1, 1}}), ArgumentError);
}

class SmallShapesLayoutTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesLayoutTest);

TEST_P(SmallShapesLayoutTest, pad_in_every_mode_and_roll) {
  for (const PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::replicate, PadMode::circular})
    run([&](std::span<const Array> x) { return pad(x[0], {{}, {2, 1}, {1, 2}, {}}, mode, 0.5); }, {{2, 3, 5, 3}});
  run([](std::span<const Array> x) { return pad(roll(x[0], 3, 1), {{}, {17, 3}}, PadMode::reflect); }, {{3, 37}});
  run([](std::span<const Array> x) { return flip(x[0], {0, 1}) * slice(x[0], 1, -1, -6, -1); }, {{3, 5}});
}

}  // namespace
}  // namespace samebytes::testing
