// Products and norms along axes and their gradients, against plain loops in double.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "graph/node.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/gradcheck.h"
#include "support/quirks.h"

namespace samebytes::testing {
namespace {

class ProductTest : public OnDevice {
 protected:
  std::uint64_t relayouts() { return engine().transfers().relayout_bytes; }
};
SAMEBYTES_ON_EVERY_DEVICE(ProductTest);

using Values = std::vector<double>;

struct Line {  // of an [outer, depth, inner]
  std::int64_t outer, depth, inner;
  template <class Visit>
  void each(Visit visit) const {
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < inner; ++i)
        visit(o * inner + i,
              [this, o, i](std::int64_t d) { return static_cast<std::size_t>((o * depth + d) * inner + i); });
  }
};

Values products(const Values& x, const Line& line) {
  Values result(static_cast<std::size_t>(line.outer * line.inner), 1);
  line.each([&](std::int64_t to, const auto& at) {
    for (std::int64_t d = 0; d < line.depth; ++d) result[static_cast<std::size_t>(to)] *= x[at(d)];
  });
  return result;
}

// Of each element the product of all others.
Values products_of_others(const Values& x, const Line& line) {
  Values result(x.size());
  line.each([&](std::int64_t, const auto& at) {
    double product = 1;
    for (std::int64_t d = 0; d < line.depth; product *= x[at(d++)]) result[at(d)] = product;
    product = 1;
    for (std::int64_t d = line.depth - 1; d >= 0; product *= x[at(d--)]) result[at(d)] *= product;
  });
  return result;
}

// Around 1 and -1; lines have no zero, one, or two.
Values mixed(const Line& line) {
  Values x = random_values(line.outer * line.depth * line.inner, 9, 0.97, 1.03);
  for (std::size_t i = 0; i < x.size(); i += 3) x[i] = -x[i];
  line.each([&](std::int64_t to, const auto& at) {
    if (to % 3 == 1) x[at((to * 7) % line.depth)] = 0;
    if (to % 3 == 2) x[at(0)] = x[at(line.depth - 1)] = 0;
  });
  for (double& v : x) v = static_cast<float>(v);
  return x;
}

TEST_P(ProductTest, agree_with_plain_loops_and_so_do_their_gradients) {
  SAMEBYTES_SKIP_QUIRK(private_arrays_lose_lanes);
  for (const Line& line : {Line{1, 1, 1}, Line{1, 2, 1}, Line{7, 10, 1}, Line{40, 3, 1}, Line{5, 257, 1},
                           Line{3, 70, 5}, Line{1, 64, 128}, Line{2, 65, 131}, Line{1, 193, 17}, Line{1, 300, 3}}) {
    const Values x = mixed(line);
    const Shape shape{line.outer, line.depth, line.inner};
    Values gradient = products_of_others(x, line);
    const Values dy = random_values(line.outer * line.inner, 4);
    line.each([&](std::int64_t to, const auto& at) {
      for (std::int64_t d = 0; d < line.depth; ++d) gradient[at(d)] *= dy[static_cast<std::size_t>(to)];
    });
    for (const Dtype dtype : real_dtypes()) {
      const std::vector<Array> a{real_array(x, shape, dtype)};
      const Array y = prod(a[0], 1);
      EXPECT_TRUE(all_close(y, products(x, line), 1e-5)) << shape.to_string();
      EXPECT_TRUE(all_close(gradients(y, a, real_array(dy, {line.outer, line.inner}, dtype))[0], gradient, 1e-5))
          << shape.to_string();
    }
  }
}

TEST_P(ProductTest, long_lines_are_cut) {
  for (const Line& line : {Line{1, 70001, 1}, Line{1, 40009, 2}, Line{1, 65536, 1}}) {
    Values x = random_values(line.depth * line.inner, 3, 0.9999, 1.0001);
    for (double& v : x) v = static_cast<float>(v);
    const std::vector<Array> a{real_array(x, {line.depth, line.inner}, f32)};
    EXPECT_TRUE(all_close(prod(a[0], 0), products(x, line), 1e-3));
    EXPECT_TRUE(all_close(gradients(sum(prod(a[0], 0)), a)[0], products_of_others(x, line), 1e-3));
  }
}

TEST_P(ProductTest, several_axes_and_views_are_read_in_place) {
  const Values x = random_values(4 * 3 * 5, 2, 0.5, 1.5);
  const std::vector<Array> a{real_array(x, {4, 3, 5}, f32)};
  const Array turned = transpose(a[0], {2, 0, 1});
  const std::uint64_t before = relayouts();
  const Values whole = prod(a[0], {0, 2}).to_vector<double>(), all = prod(a[0]).to_vector<double>();
  EXPECT_TRUE(all_close(prod(turned, {0, 1}), whole, 1e-5));
  EXPECT_TRUE(all_close(prod(flip(a[0], {1}), {0, 1, 2}, true), all, 1e-5));
  EXPECT_TRUE(all_close(prod(broadcast_to(slice(a[0], 0, 0, 1), {4, 3, 5}), {0, 2}),
                        square(square(prod(slice(a[0], 0, 0, 1), {0, 2}))).to_vector<double>(), 1e-4));
  EXPECT_EQ(relayouts(), before);
  for (int i = 0; i < 3; ++i) {
    double product = 1;
    for (int o = 0; o < 4; ++o)
      for (int k = 0; k < 5; ++k) product *= x[static_cast<std::size_t>((o * 3 + i) * 5 + k)];
    EXPECT_NEAR(whole[static_cast<std::size_t>(i)], product, 1e-5 * product);
  }
  const Values of_two = gradients(sum(prod(a[0], {0, 2})), a)[0].to_vector<double>(),
               of_view = gradients(sum(prod(turned, {0, 1})), a)[0].to_vector<double>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(of_two[i], whole[i / 5 % 3] / x[i], 1e-5 * std::abs(of_two[i]));
    EXPECT_NEAR(of_view[i], of_two[i], 1e-5 * std::abs(of_two[i]));
  }
}

TEST_P(ProductTest, of_whole_numbers_wrap_around_and_sixteen_bits_round_once) {
  const std::vector<std::int32_t> numbers{3, 5, 1 << 20, 7, -2, 1 << 12};
  const Array i = array(std::span<const std::int32_t>(numbers), {2, 3});
  EXPECT_EQ(prod(i, 1).to_vector<std::int32_t>(), (std::vector<std::int32_t>{15 << 20, -14 << 12}));
  EXPECT_EQ(prod(transpose(i), 0).to_vector<std::int32_t>(), (std::vector<std::int32_t>{15 << 20, -14 << 12}));
  EXPECT_EQ(prod(i).value(), 0);  // 2^33 divides it
  const std::vector<std::uint8_t> bytes{200, 3, 2, 0};
  const Array b = array(std::span<const std::uint8_t>(bytes), {2, 2});
  EXPECT_EQ(prod(b, 1).dtype(), i32);
  EXPECT_EQ(prod(b, 1).to_vector<std::int32_t>(), (std::vector<std::int32_t>{600, 0}));
  EXPECT_EQ(prod(greater(b, full({}, 2, u8))).value(), 0);
  EXPECT_EQ(prod(zeros({0, 2}, i32), 0).to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 1}));
  EXPECT_EQ(prod(zeros({2, 0}), 0).shape(), (Shape{0}));
  EXPECT_EQ(prod(full({}, 3)).value(), 3);
  for (const Dtype dtype : {f16, bf16}) {
    const std::vector<Array> x{astype(real_array(random_values(200 * 37, 3, 0.98, 1.03), {200, 37}, f32), dtype)};
    const Array wide = astype(x[0], f32);
    for (const int axis : {0, 1}) {
      EXPECT_TRUE(same_bytes(prod(x[0], axis), astype(prod(wide, axis), dtype)));
      const std::vector<Array> w{wide};
      EXPECT_TRUE(
          same_bytes(gradients(sum(prod(x[0], axis)), x)[0], astype(gradients(sum(prod(wide, axis)), w)[0], dtype)));
    }
  }
}

// The Euclidean norm over the last axes has a kernel; over others, of views and of long rows it is made of other ops.
TEST_P(ProductTest, norms_agree_with_plain_loops) {
  SAMEBYTES_SKIP_QUIRK(private_arrays_lose_lanes);
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 17}, Shape{130, 5}, Shape{7, 2000}, Shape{2, 40009}}) {
    const Values x = random_values(shape.size(), 6);
    Values want(static_cast<std::size_t>(shape[0]));
    for (std::size_t i = 0; i < x.size(); ++i)
      want[i / static_cast<std::size_t>(shape[1])] += std::pow(static_cast<float>(x[i]), 2);
    for (double& v : want) v = std::sqrt(v);
    for (const Dtype dtype : real_dtypes()) {
      const std::vector<Array> a{real_array(x, shape, dtype)};
      const double tolerance = 4 * sum_tolerance(dtype == f64 ? f32 : dtype, shape[1]);
      EXPECT_TRUE(all_close(norm(a[0], 2, 1), want, tolerance)) << shape.to_string();
      EXPECT_TRUE(all_close(norm(transpose(a[0]), 2, 0, true), want, tolerance)) << shape.to_string();
      const Values dx = gradients(sum(norm(a[0], 2, 1)), a)[0].to_vector<double>();
      for (std::size_t i = 0; i < x.size(); i += 13)
        EXPECT_NEAR(dx[i], x[i] / want[i / static_cast<std::size_t>(shape[1])], 1e-5);
    }
  }
  const Array a = real_array(random_values(2 * 3 * 4, 2), {2, 3, 4}, f32);
  EXPECT_EQ(norm(a, 2, {1, 2}, true).shape(), (Shape{2, 1, 1}));
  EXPECT_TRUE(all_close(norm(a, 2, {1, 2}), norm(reshape(a, {2, 12}), 2, 1).to_vector<double>(), 0));
  EXPECT_TRUE(all_close(norm(a), norm(reshape(a, {1, 24}), 2, 1).to_vector<double>(), 0));
  EXPECT_EQ(norm(zeros({2, 0}), 2, 1).to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(norm(array<std::int32_t>({3, 4})).value(), 5);
  const std::vector<Array> with_zeros{array({0, 0, 3, 4}, {2, 2})};
  EXPECT_EQ(gradients(sum(norm(with_zeros[0], 2, 1)), with_zeros)[0].to_vector<float>(),
            (std::vector<float>{0, 0, 0.6f, 0.8f}));
  const Array half = astype(real_array(random_values(3 * 99, 3), {3, 99}, f32), f16);
  EXPECT_TRUE(same_bytes(norm(half, 2, 1), astype(norm(astype(half, f32), 2, 1), f16)));
}

}  // namespace
}  // namespace samebytes::testing
