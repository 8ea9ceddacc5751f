// Arrays of 64-bit whole numbers: every op that takes i32 takes them, nothing goes through 32 bits or through floats,
// and as indices they never wrap into an axis.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using Values = std::vector<double>;
using Wholes = std::vector<std::int64_t>;
using Limits = std::numeric_limits<std::int64_t>;

constexpr std::int64_t kBeyondInts = std::int64_t{1} << 32, kBeyondDoubles = (std::int64_t{1} << 53) + 1;

class I64Test : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(I64Test);

Array wholes(const Wholes& values) { return array(std::span<const std::int64_t>(values), {std::ssize(values)}); }
Wholes values_of(const Array& a) {
  EXPECT_EQ(a.dtype(), i64);
  return a.to_vector<std::int64_t>();
}
// Any bits, and among them the ends and numbers that differ in their upper halves alone.
Wholes any_wholes(std::int64_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  Wholes values(static_cast<std::size_t>(n));
  for (std::int64_t& value : values) value = static_cast<std::int64_t>(random());
  for (std::size_t i = 0; i + 4 < values.size(); i += 5) values[i] = static_cast<std::int64_t>(i % 7) * kBeyondInts;
  if (n > 2) values[1] = Limits::min();
  if (n > 2) values[2] = Limits::max();
  return values;
}
std::int64_t wrapped_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t wrapped_product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
template <class F>
Wholes each(const Wholes& a, F f) {
  Wholes result(a.size());
  std::transform(a.begin(), a.end(), result.begin(), f);
  return result;
}

TEST_P(I64Test, numbers_beside_arrays_are_exact) {
  const Wholes a{kBeyondInts, -kBeyondInts, kBeyondDoubles, -3, 0, 7};
  const Array x = wholes(a);
  EXPECT_EQ(values_of(x + 1), each(a, [](std::int64_t v) { return v + 1; }));
  EXPECT_EQ(values_of(5 - x), each(a, [](std::int64_t v) { return 5 - v; }));
  EXPECT_EQ(values_of(x * 3), each(a, [](std::int64_t v) { return v * 3; }));
  EXPECT_EQ(values_of(x + kBeyondDoubles), each(a, [](std::int64_t v) { return v + kBeyondDoubles; }));
  EXPECT_EQ(values_of(clip(x, -kBeyondInts, kBeyondInts + 1)),
            each(a, [](std::int64_t v) { return std::clamp(v, -kBeyondInts, kBeyondInts + 1); }));
  EXPECT_EQ(values_of(maximum(x, kBeyondInts + 1)),
            each(a, [](std::int64_t v) { return std::max(v, kBeyondInts + 1); }));
  EXPECT_EQ(values_of(where(x > kBeyondInts, x, kBeyondDoubles)),
            each(a, [](std::int64_t v) { return v > kBeyondInts ? v : kBeyondDoubles; }));
  EXPECT_EQ(values_of(masked_fill(x, x < 0, kBeyondDoubles)),
            each(a, [](std::int64_t v) { return v < 0 ? kBeyondDoubles : v; }));
  EXPECT_EQ(values_of(fmod(x, 5)), each(a, [](std::int64_t v) { return v % 5; }));
  EXPECT_EQ(values_of(remainder(x, 5)), each(a, [](std::int64_t v) { return (v % 5 + 5) % 5; }));
  EXPECT_EQ(values_of(remainder(x, 0)), Wholes(a.size(), 0));
  EXPECT_EQ((x + 1.5).dtype(), f32);
  EXPECT_EQ((x / x).dtype(), f32);
  EXPECT_EQ((x == kBeyondDoubles).to_vector<bool>(), (std::vector<bool>{false, false, true, false, false, false}));
  EXPECT_EQ((array<std::int32_t>({5, -5}) < kBeyondInts).to_vector<bool>(), (std::vector<bool>{true, true}));
}

TEST_P(I64Test, arrays_of_a_pattern_are_exact) {
  EXPECT_EQ(values_of(full({3}, kBeyondDoubles, i64)), Wholes(3, kBeyondDoubles));
  EXPECT_EQ(values_of(full({2}, Limits::min(), i64)), Wholes(2, Limits::min()));
  EXPECT_EQ(values_of(full({17}, -1, i64)), Wholes(17, -1));
  EXPECT_EQ(values_of(full_like(wholes({1, 2}), Limits::max())), Wholes(2, Limits::max()));
  EXPECT_EQ(values_of(zeros({2}, i64)), Wholes(2, 0));
  EXPECT_EQ(values_of(ones({2}, i64)), Wholes(2, 1));
  EXPECT_EQ(values_of(arange(-1, 1e10, 4e9, i64)), (Wholes{-1, 3999999999, 7999999999}));
  const std::int64_t many = is_simulated() ? 100 : 100'003;
  const Array filled = full({many}, kBeyondInts + 5, i64), counted = arange(0, static_cast<double>(many), 1, i64);
  EXPECT_EQ(values_of(filled), Wholes(static_cast<std::size_t>(many), kBeyondInts + 5));
  Wholes numbers(static_cast<std::size_t>(many));
  std::iota(numbers.begin(), numbers.end(), 0);
  EXPECT_EQ(values_of(counted), numbers);
  EXPECT_ERROR(full({1}, 0.5, i64), ArgumentError, "full: the value must fit i64, got 0.5");
  EXPECT_ERROR(full({1}, ~std::uint64_t{0}, i64), ArgumentError,
               "full: the value must fit i64, got 18446744073709551616");
}

TEST_P(I64Test, pointwise_values_wrap_around_in_64_bits) {
  for (const std::int64_t n : {1, 3, 16, 37, 1031}) {
    const Wholes a = any_wholes(n, 1), b = any_wholes(n, 2);
    const Array x = wholes(a), y = wholes(b);
    Wholes sum(a.size()), product(a.size()), least(a.size());
    std::vector<bool> is_less(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      sum[i] = wrapped_sum(a[i], b[i]);
      product[i] = wrapped_product(a[i], b[i]);
      least[i] = std::min(a[i], b[i]);
      is_less[i] = a[i] < b[i];
    }
    EXPECT_EQ(values_of(x + y), sum);
    EXPECT_EQ(values_of(x * y), product);
    EXPECT_EQ(values_of(minimum(x, y)), least);
    EXPECT_EQ((x < y).to_vector<bool>(), is_less);
    EXPECT_EQ(values_of(-x), each(a, [](std::int64_t v) { return wrapped_product(v, -1); }));
    EXPECT_EQ(values_of(sign(x)), each(a, [](std::int64_t v) { return std::int64_t{v > 0} - std::int64_t{v < 0}; }));
    EXPECT_EQ(values_of(relu(x)), each(a, [](std::int64_t v) { return std::max<std::int64_t>(v, 0); }));
    EXPECT_EQ(values_of(where(x < y, x, y)), least);
    EXPECT_EQ(logical_and(x, y).dtype(), bool_);
  }
  EXPECT_EQ(values_of(zeros({0, 3}, i64) + 1), Wholes());
}

TEST_P(I64Test, views_are_read_where_they_are) {
  const Wholes a = any_wholes(7 * 35, 3);
  const Array x = array(std::span<const std::int64_t>(a), {7, 35});
  const auto at = [&](std::int64_t r, std::int64_t c) { return a[static_cast<std::size_t>(r * 35 + c)]; };
  Wholes turned, picked, back, wide;
  for (int c = 0; c < 35; ++c)
    for (int r = 0; r < 7; ++r) turned.push_back(wrapped_sum(at(r, c), 1));
  for (int r = 1; r < 7; r += 2)
    for (int c = 3; c < 35; c += 3) picked.push_back(wrapped_sum(at(r, c), 1));
  for (int r = 0; r < 7; ++r)
    for (int c = 34; c >= 0; --c) back.push_back(wrapped_sum(at(r, c), at(r, 0)));
  EXPECT_EQ(values_of(transpose(x) + 1), turned);
  EXPECT_EQ(values_of(contiguous(transpose(x)) + 1), turned);
  EXPECT_EQ(values_of(slice(slice(x, 0, 1, 7, 2), 1, 3, 35, 3) + 1), picked);
  EXPECT_EQ(values_of(flip(x, 1) + slice(x, 1, 0, 1)), back);
  for (int r = 0; r < 7; ++r)
    for (int c = 0; c < 35; ++c) wide.push_back(wrapped_product(at(r, c), at(2, c)));
  EXPECT_EQ(values_of(x * x[2]), wide);  // a repeated row of no whole vectors
}

TEST_P(I64Test, casts_go_in_every_direction) {
  const Array x = wholes({-1, 0, 300, kBeyondInts + 7, kBeyondDoubles});
  EXPECT_EQ(astype(x, i32).to_vector<std::int64_t>(), (Wholes{-1, 0, 300, 7, 1}));
  EXPECT_EQ(astype(x, u8).to_vector<std::int64_t>(), (Wholes{255, 0, 44, 7, 1}));
  EXPECT_EQ(astype(x, bool_).to_vector<bool>(), (std::vector<bool>{true, false, true, true, true}));
  EXPECT_EQ(astype(wholes({kBeyondInts}), bool_).to_vector<bool>(), std::vector<bool>{true});
  EXPECT_EQ(astype(x, f32).to_vector<double>(), (std::vector<double>{-1, 0, 300, 4294967296, 9007199254740992}));
  EXPECT_EQ(astype(x, f16).to_vector<double>()[2], 300);
  EXPECT_EQ(values_of(astype(array({-1.75f, 0, 2.5f, 0x1p40f, -0x1p62f}), i64)),
            (Wholes{-1, 0, 2, std::int64_t{1} << 40, -(std::int64_t{1} << 62)}));
  EXPECT_EQ(values_of(astype(array<std::int32_t>({-5, 2147483647}), i64)), (Wholes{-5, 2147483647}));
  EXPECT_EQ(values_of(astype(array<std::uint8_t>({200}), i64)), Wholes{200});
  EXPECT_EQ(values_of(astype(array<bool>({true, false}), i64)), (Wholes{1, 0}));
  if (!has_f64()) return;
  EXPECT_EQ(astype(x, f64).to_vector<double>(), (std::vector<double>{-1, 0, 300, 4294967303, 9007199254740992}));
  EXPECT_EQ(values_of(astype(array(std::vector<double>{-0x1p53, 1e15 + 0.75}, {2}), i64)),
            (Wholes{-(kBeyondDoubles - 1), 1'000'000'000'000'000}));
}

// One expression of i32, i64, u8, bool and floats, whole and step by step.
TEST_P(I64Test, fused_mixtures_equal_op_by_op) {
  std::vector<Dtype> reals = real_dtypes();
  reals.insert(reals.end(), {f16, bf16});
  for (const Dtype real : reals)
    for (const std::int64_t n : {5, 33, 4099}) {
      const Array wide = wholes(any_wholes(n, 4)), ints = astype(wholes(any_wholes(n, 5)), i32),
                  bytes = astype(ints, u8),
                  reals_of = astype(real_array(random_values(n, 6), {n}, real == f64 ? f64 : f32), real);
      const auto computed = [&](auto&& step) {
        const Array a = step(ints * ints + 3);                   // wraps in 32 bits
        const Array b = step(a + wide);                          // i64
        const Array c = step(astype(b, i32) * bytes);            // the lower half
        const Array d = step(where(b > wide, c, bytes));         // i32
        const Array e = step(astype(d, i64) * kBeyondInts + b);  // i64
        const Array f = step(astype(e, f32) * 1e-15);            // f32
        const Array g = step(reals_of * 100 + bytes);            // real
        const Array h = step(astype(g, i64) - wide);             // i64
        const Array t = step(logical_or(h > e, f > 0.5));        // bool
        return std::vector<Array>{a, b, c, d, e, f, g, h, t, step(where(t, h, e)), step(bytes + bytes * 3)};
      };
      const std::vector<Array> fused = computed([](const Array& x) { return x; });
      const std::vector<Array> apart = computed([](const Array& x) {
        x.eval();
        return x;
      });
      eval(fused);
      for (std::size_t i = 0; i < fused.size(); ++i) {
        EXPECT_EQ(fused[i].dtype(), apart[i].dtype());
        EXPECT_EQ(fused[i].to_vector<double>(), apart[i].to_vector<double>()) << i << " " << name_of(real) << " " << n;
        if (!is_floating(fused[i].dtype())) {
          EXPECT_EQ(fused[i].to_vector<std::int64_t>(), apart[i].to_vector<std::int64_t>()) << i;
        }
      }
    }
}

TEST_P(I64Test, reductions_are_of_64_bits) {
  const std::int64_t n = is_simulated() ? 67 : 70'001;
  for (const std::int64_t rows : {1, 3}) {
    const Wholes a = any_wholes(rows * n, 7);
    const Array x = array(std::span<const std::int64_t>(a), {rows, n});
    Wholes sums, products, most, least;
    std::vector<std::int32_t> where_most, where_least;
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto begin = a.begin() + r * n, end = begin + n;
      sums.push_back(std::accumulate(begin, end, std::int64_t{0}, wrapped_sum));
      products.push_back(std::accumulate(begin, end, std::int64_t{1}, wrapped_product));
      most.push_back(*std::max_element(begin, end));
      least.push_back(*std::min_element(begin, end));
      where_most.push_back(static_cast<std::int32_t>(std::max_element(begin, end) - begin));
      where_least.push_back(static_cast<std::int32_t>(std::min_element(begin, end) - begin));
    }
    // Over rows that lie densely, columns, and a view.
    const Array columns = contiguous(transpose(x)), view = flip(transpose(x), 0);
    EXPECT_EQ(values_of(sum(x, 1)), sums);
    EXPECT_EQ(values_of(sum(columns, 0)), sums);
    EXPECT_EQ(values_of(sum(view, 0)), sums);
    EXPECT_EQ(values_of(prod(x, 1)), products);
    EXPECT_EQ(values_of(prod(view, 0)), products);
    EXPECT_EQ(values_of(max(x, 1)), most);
    EXPECT_EQ(values_of(max(view, 0)), most);
    EXPECT_EQ(values_of(min(columns, 0)), least);
    EXPECT_EQ(values_of(min(view, 0)), least);
    EXPECT_EQ(argmax(x, 1).to_vector<std::int32_t>(), where_most);
    EXPECT_EQ(argmin(columns, 0).to_vector<std::int32_t>(), where_least);
    EXPECT_EQ(argmax(x, 1).dtype(), i32);
  }
  EXPECT_EQ(values_of(sum(full({5}, 2'000'000'000, i64))), Wholes{10'000'000'000});
  EXPECT_EQ(values_of(sum(broadcast_to(full({1, 3}, kBeyondInts, i64), {4, 3}), 0)), Wholes(3, 4 * kBeyondInts));
  EXPECT_EQ(mean(wholes({kBeyondInts, 3 * kBeyondInts})).dtype(), f32);
  EXPECT_EQ(mean(wholes({kBeyondInts, 3 * kBeyondInts})).value(), 2.0 * kBeyondInts);
  EXPECT_EQ(mean(full({100'000}, 3, i64)).value(), 3.0);
  EXPECT_EQ(any(wholes({0, kBeyondInts})).value(), 1.0);
  EXPECT_EQ(all(wholes({0, kBeyondInts})).value(), 0.0);
  EXPECT_EQ(values_of(sum(zeros({0}, i64))), Wholes{0});
  EXPECT_EQ(values_of(prod(zeros({0}, i64))), Wholes{1});
}

TEST_P(I64Test, running_sums_are_of_64_bits) {
  std::vector<Shape> shapes{{1}, {3, 5, 7}, {67}};
  if (!is_simulated()) shapes.insert(shapes.end(), {{9001}, {2, 9001}, {5003, 3}});
  for (const Shape& shape : shapes) {
    const int axis = shape.rank() > 1 && shape[0] > shape[1] ? 0 : shape.rank() - 1;
    Wholes want = any_wholes(shape.size(), 8);
    const Array x = array(std::span<const std::int64_t>(want), shape);
    std::int64_t inner = 1;
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
    for (std::int64_t i = 0; i < shape.size(); ++i)
      if (i / inner % shape[axis] > 0)
        want[static_cast<std::size_t>(i)] =
            wrapped_sum(want[static_cast<std::size_t>(i)], want[static_cast<std::size_t>(i - inner)]);
    EXPECT_EQ(values_of(cumsum(x, axis)), want) << shape.to_string();
  }
}

TEST_P(I64Test, sorts_by_all_64_bits) {
  for (const std::int64_t n : std::initializer_list<std::int64_t>{2, 31, 67, is_simulated() ? 130 : 70'001}) {
    const Wholes a = any_wholes(n, 9);
    std::vector<std::int32_t> order(a.size()), down(a.size());
    std::iota(order.begin(), order.end(), 0);
    std::iota(down.begin(), down.end(), 0);
    const auto value = [&](std::int32_t i) { return a[static_cast<std::size_t>(i)]; };
    std::stable_sort(order.begin(), order.end(), [&](auto i, auto j) { return value(i) < value(j); });
    std::stable_sort(down.begin(), down.end(), [&](auto i, auto j) { return value(i) > value(j); });
    const Array x = wholes(a);
    const SortResult up = sort(x);
    EXPECT_EQ(up.indices.to_vector<std::int32_t>(), order) << n;
    EXPECT_EQ(values_of(up.values), values_of(take(x, up.indices)));
    EXPECT_EQ(argsort(x, -1, true).to_vector<std::int32_t>(), down) << n;
    const std::int64_t k = std::min<std::int64_t>(n, 5);
    down.resize(static_cast<std::size_t>(k));
    EXPECT_EQ(top_k(x, k).indices.to_vector<std::int32_t>(), down) << n;
    EXPECT_EQ(values_of(top_k(x, 1).values), Wholes{*std::max_element(a.begin(), a.end())});
  }
}

TEST_P(I64Test, moves_values_of_64_bits) {
  const Array x = reshape(wholes({kBeyondInts, -1, kBeyondDoubles, Limits::min(), 5, Limits::max()}), {2, 3});
  const Array index = array<std::int32_t>({2, 0, 7});
  EXPECT_EQ(values_of(take(x, index, 1)),
            (Wholes{kBeyondDoubles, kBeyondInts, -1, Limits::max(), Limits::min(), -1}));  // -1: outside
  EXPECT_EQ(values_of(take(x, array<std::int32_t>({1, -3}))), (Wholes{Limits::min(), 5, Limits::max(), -1, -1, -1}));
  EXPECT_EQ(values_of(gather(x, 0, array<std::int32_t>({1, 0, 9}, {1, 3}))), (Wholes{Limits::min(), -1, -1}));
  EXPECT_EQ(values_of(scatter(x, 1, array<std::int32_t>({0, 3}, {2, 1}), full({2, 1}, kBeyondInts + 1, i64))),
            (Wholes{kBeyondInts + 1, -1, kBeyondDoubles, -1, -1, -1}));
  EXPECT_EQ(values_of(concat({x, array<std::int32_t>({1, 2}, {2, 1})}, 1)),
            (Wholes{kBeyondInts, -1, kBeyondDoubles, 1, Limits::min(), 5, Limits::max(), 2}));
  EXPECT_EQ(values_of(stack({x[0], x[1]}, 1)),
            (Wholes{kBeyondInts, Limits::min(), -1, 5, kBeyondDoubles, Limits::max()}));
  EXPECT_EQ(values_of(roll(x[0], 1, 0)), (Wholes{kBeyondDoubles, kBeyondInts, -1}));
  EXPECT_EQ(values_of(flip(x[0], 0)), (Wholes{kBeyondDoubles, -1, kBeyondInts}));
  EXPECT_EQ(values_of(pad(x[0], {{1, 1}})), (Wholes{0, kBeyondInts, -1, kBeyondDoubles, 0}));
  EXPECT_EQ(values_of(repeat_interleave(x[0], 2, 0)),
            (Wholes{kBeyondInts, kBeyondInts, -1, -1, kBeyondDoubles, kBeyondDoubles}));
  EXPECT_EQ(values_of(tile(x[0], {2})), (Wholes{kBeyondInts, -1, kBeyondDoubles, kBeyondInts, -1, kBeyondDoubles}));
  EXPECT_EQ(values_of(tril(x)), (Wholes{kBeyondInts, 0, 0, Limits::min(), 5, 0}));
  EXPECT_EQ(values_of(copy(x[1])), (Wholes{Limits::min(), 5, Limits::max()}));
}

TEST_P(I64Test, indices_beyond_32_bits_stay_outside) {
  const Array a = array({10, 11, 12});
  const double none = std::numeric_limits<double>::quiet_NaN();
  const Array index = wholes({2, -1, kBeyondInts, -kBeyondInts, kBeyondInts + 1, Limits::min(), Limits::max()});
  EXPECT_TRUE(all_close(take(a, index), Values{12, 12, none, none, none, none, none}, 0));
  EXPECT_TRUE(all_close(gather(a, 0, slice(index, 0, 0, 3)), Values{12, 12, none}, 0));
  EXPECT_EQ(take(array<std::int32_t>({7, 8}), wholes({1, kBeyondInts})).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{8, -1}));
  EXPECT_EQ(take(array<std::uint8_t>({7, 8}), wholes({0, kBeyondInts})).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{7, 255}));
  EXPECT_TRUE(all_close(scatter_add(a, 0, wholes({0, 2}), array({1, 2})), Values{11, 11, 14}, 0));
  EXPECT_TRUE(all_close(scatter_add(a, 0, wholes({kBeyondInts}), array({1})), Values{none, none, none}, 0));
  EXPECT_TRUE(all_close(scatter(a, 0, wholes({1, 0}), array({1, 2})), Values{2, 1, 12}, 0));
  EXPECT_TRUE(all_close(one_hot(wholes({1, kBeyondInts, -kBeyondInts + 1}), 2), Values{0, 1, 0, 0, 0, 0}, 0));
  EXPECT_EQ(bincount(wholes({1, 1, kBeyondInts, kBeyondInts + 1, -1, 0}), 2).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{1, 2}));
  const Array table = reshape(arange(0, 6), {3, 2});
  EXPECT_TRUE(all_close(embedding(wholes({2, kBeyondInts}), table), Values{4, 5, none, none}, 0));
  const std::vector<Array> wrt{table};
  EXPECT_TRUE(all_close(gradients(sum(embedding(wholes({2, 0, 2}), table)), wrt)[0], Values{1, 1, 0, 0, 2, 2}, 0));
}

TEST_P(I64Test, labels_and_lengths_may_have_64_bits) {
  const Array logits = real_array(random_values(12, 10), {4, 3}, f32), wide = wholes({2, 0, 1, 2}),
              ints = astype(wide, i32), astray = wholes({2, 0, kBeyondInts, 2});
  EXPECT_EQ(cross_entropy(logits, wide).value(), cross_entropy(logits, ints).value());
  EXPECT_TRUE(std::isnan(cross_entropy(logits, astray).value()));
  EXPECT_EQ(cross_entropy(logits, wide, {.ignore_index = 0}).value(),
            cross_entropy(logits, ints, {.ignore_index = 0}).value());
  const Array logs = log_softmax(logits);
  EXPECT_EQ(nll_loss(logs, wide).value(), nll_loss(logs, ints).value());
  EXPECT_TRUE(std::isnan(nll_loss(logs, astray).value()));
  EXPECT_EQ(multi_margin_loss(logits, wide).value(), multi_margin_loss(logits, ints).value());
  const Array weight = real_array(random_values(9, 11), {3, 3}, f32);
  EXPECT_EQ(linear_cross_entropy(logits, weight, wide).value(), linear_cross_entropy(logits, weight, ints).value());
  Accuracy accuracy;
  accuracy.add(logits, argmax(logits));
  accuracy.add(logits, astype(argmax(logits), i64) + kBeyondInts);
  EXPECT_EQ(accuracy.value(), 0.5);

  const Array q = real_array(random_values(2 * 4 * 8, 12), {2, 4, 1, 8}, f32);
  const auto same = [](const Array& x, const Array& y) { EXPECT_EQ(x.to_vector<float>(), y.to_vector<float>()); };
  const Array lengths = wholes({3, kBeyondInts});
  same(scaled_dot_product_attention(q, q, q, {.lengths = lengths}),
       scaled_dot_product_attention(q, q, q, {.lengths = array<std::int32_t>({3, 4})}));
  same(scaled_dot_product_attention(q, q, q, {.causal = true, .offsets = wholes({0, 1})}),
       scaled_dot_product_attention(q, q, q, {.causal = true, .offsets = array<std::int32_t>({0, 1})}));
}

TEST_P(I64Test, a_cell_keeps_64_bits_and_no_gradient_flows_into_it) {
  const Array counter = cell(wholes({kBeyondInts, 1}), "counter");
  assign(counter, counter + kBeyondDoubles);
  EXPECT_EQ(values_of(counter), (Wholes{kBeyondInts + kBeyondDoubles, kBeyondDoubles + 1}));
  const Array x = array({1, 2});
  const std::vector<Array> wrt{x};
  EXPECT_TRUE(all_close(gradients(sum(x * wholes({3, 4})), wrt)[0], Values{3, 4}, 0));
  const std::vector<Array> whole{wholes({3, 4})};
  EXPECT_THROW(gradients(sum(x * whole[0]), whole), ArgumentError);
}

TEST_P(I64Test, a_custom_op_takes_longs) {
  const CustomOp op{.name = "halves",
                    .entry = "halves",
                    .source =
                        "__kernel void halves(ARRAY(const long, x), ARRAY(long, y), const int n) {\n"
                        "  START(x);\n  START(y);\n"
                        "  for (long i = SB_BEGIN(n); i < SB_END(n); ++i) y[i] = x[i] / 2;\n}\n"};
  EXPECT_EQ(values_of(custom_op(op, {wholes({2 * kBeyondDoubles, -6})}, {2}, i64)), (Wholes{kBeyondDoubles, -3}));
  EXPECT_ERROR(
      custom_op(op, {array<std::int32_t>({1})}, {1}, i64), ArgumentError,
      "halves: kernel halves: parameter 0, \"ARRAY(const long, x)\", takes an array of long, it is passed an array "
      "of int (input 0)");
}

}  // namespace
}  // namespace samebytes::testing
