// Embedding, take, gather, scatter_add and one_hot against plain loops.
#include "samebytes/ops/indexing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

class IndexingTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(IndexingTest);

using Ints = std::vector<std::int32_t>;

Ints random_ids(std::int64_t n, std::int64_t below, std::uint64_t seed = 5) {
  Ints ids;
  for (const double u : random_values(n, seed, 0, 1)) ids.push_back(static_cast<int>(u * static_cast<double>(below)));
  return ids;
}

Array index_array(const Ints& ids, const Shape& shape) { return array(std::span<const std::int32_t>(ids), shape); }

// The sums of rows of src [n, d] by their ids, in order.
std::vector<double> summed_rows(const Ints& ids, std::span<const double> src, std::size_t rows, std::size_t d,
                                int left_out = -1) {
  std::vector<double> sums(rows * d, 0.0);
  for (std::size_t j = 0; j < ids.size(); ++j)
    if (ids[j] >= 0 && ids[j] < static_cast<int>(rows) && ids[j] != left_out)
      for (std::size_t i = 0; i < d; ++i) sums[static_cast<std::size_t>(ids[j]) * d + i] += src[j * d + i];
  return sums;
}

TEST_P(IndexingTest, embedding_takes_rows_and_sums_their_gradients) {
  struct Case {
    std::int64_t rows, width, ids;
  };
  std::vector<Case> cases{{11, 3, 7}, {1, 1, 5}, {7, 67, 600}, {5000, 19, 300}};
  if (!is_simulated()) cases.push_back({50257, 96, 1024});
  for (const Case& c : cases)
    for (const Dtype dtype : real_dtypes()) {
      const auto table = random_values(c.rows * c.width, 3);
      const auto weights = random_values(c.ids * c.width, 4);
      const Ints ids = random_ids(c.ids, c.rows);
      const std::vector<Array> wrt{real_array(table, {c.rows, c.width}, dtype)};
      const Array y = embedding(index_array(ids, {c.ids}), wrt[0]);
      const Array dy = real_array(weights, {c.ids, c.width}, dtype);
      const Array dtable = gradients(sum(y * dy), wrt)[0];
      std::vector<double> want;
      const auto width = static_cast<std::size_t>(c.width);
      for (const int id : ids)
        want.insert(want.end(), table.begin() + id * c.width, table.begin() + (id + 1) * c.width);
      EXPECT_TRUE(all_close(y, want, dtype == f32 ? 1e-7 : 1e-15)) << c.rows;
      EXPECT_TRUE(all_close(dtable, summed_rows(ids, weights, static_cast<std::size_t>(c.rows), width),
                            sum_tolerance(dtype, c.ids)))
          << c.rows;
    }
}

TEST_P(IndexingTest, padding_takes_no_gradient_but_gives_its_row) {
  const std::vector<Array> wrt{real_array(random_values(10), {5, 2}, f32)};
  const Ints ids{3, 1, 3, 0};
  const Array y = embedding(index_array(ids, {2, 2}), wrt[0], 3);
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2}));
  const Array dtable = gradients(sum(y), wrt)[0];
  EXPECT_TRUE(all_close(dtable, std::vector<double>{1, 1, 1, 1, 0, 0, 0, 0, 0, 0}, 0));
  EXPECT_TRUE(same_bytes(slice(reshape(y, {4, 2}), 0, 0, 1), slice(wrt[0], 0, 3, 4)));
}

TEST_P(IndexingTest, gradients_are_the_numerical_ones) {
  SAMEBYTES_NEEDS_F64();
  const Array ids = index_array({2, 0, 2, 4, 2, 3}, {2, 3});
  EXPECT_TRUE(check_gradients([&](auto x) { return embedding(ids, x[0]); }, {random_input("table", {5, 3})}));
  EXPECT_TRUE(check_gradients([&](auto x) { return take(x[0], ids, 1); }, {random_input("a", {2, 5, 3})}));
  EXPECT_TRUE(check_gradients([&](auto x) { return take(x[0], ids, -1); }, {random_input("a", {3, 5})}));
  EXPECT_TRUE(check_gradients([&](auto x) { return gather(x[0], 1, ids); }, {random_input("a", {2, 5})}));
  EXPECT_TRUE(check_gradients([&](auto x) { return scatter_add(x[0], 1, ids, x[1]); },
                              {random_input("a", {3, 5}), random_input("src", {2, 4}, 2)}));
}

TEST_P(IndexingTest, a_table_that_is_also_a_weight_gets_one_gradient) {
  const Array ids = index_array({2, 0, 2, 4, 2, 3}, {6});
  const auto loss = [&](const Array& table, const Array& weight) {
    return sum(square(linear(embedding(ids, table), weight)));
  };
  const auto values = random_values(35 * 5);
  const auto launches_of = [&](bool is_shared, Array& result) {
    const Array a = real_array(values, {35, 5}, f32), b = is_shared ? a : real_array(values, {35, 5}, f32);
    const std::vector<Array> d = gradients(loss(a, b), std::vector<Array>{a, b});
    result = is_shared ? d[0] : d[0] + d[1];
    const std::uint64_t before = engine().plans().launches;
    result.wait();
    return engine().plans().launches - before;
  };
  Array shared, apart;
  EXPECT_EQ(launches_of(true, shared) + 1, launches_of(false, apart));  // no addition of two tables
  EXPECT_TRUE(all_close(shared, apart.to_vector<double>(), sum_tolerance(f32, 35)));
}

TEST_P(IndexingTest, take_follows_numpy_along_every_axis) {
  const Shape shape{3, 5, 7};
  const auto values = random_values(105);
  const Ints ids{2, 0, 2, 1};
  for (int axis = 0; axis < 3; ++axis) {
    const Array a = real_array(values, shape, f32);
    const Array y = take(a, index_array(ids, {2, 2}), axis - 3);
    Shape want = axis == 0 ? Shape{2, 2, 5, 7} : axis == 1 ? Shape{3, 2, 2, 7} : Shape{3, 5, 2, 2};
    ASSERT_EQ(y.shape(), want);
    std::vector<Array> parts;
    for (const int id : ids) parts.push_back(slice(a, axis, id, id + 1));
    EXPECT_TRUE(same_bytes(y, reshape(concat(parts, axis), want))) << axis;
  }
  EXPECT_EQ(take(array({1, 2, 3}), index_array({2}, {})).shape(), Shape());
  EXPECT_EQ(take(array({1, 2, 3}), empty({0, 4}, i32)).shape(), (Shape{0, 4}));
}

TEST_P(IndexingTest, moves_serve_all_element_types) {
  const Array ids = index_array({2, -4, 3, 0}, {4});
  const Array a = array({5, 6, 7});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Dtype dtype : {f32, f16, bf16})
    EXPECT_TRUE(all_close(take(astype(a, dtype), ids), std::vector<double>{7, nan, nan, 5}, 0)) << name_of(dtype);
  for (const Dtype dtype : real_dtypes())
    EXPECT_TRUE(all_close(gather(astype(a, dtype), 0, ids), std::vector<double>{7, nan, nan, 5}, 0));
  EXPECT_EQ(take(astype(a, i32), ids).to_vector<std::int32_t>(), (Ints{7, -1, -1, 5}));
  EXPECT_EQ(gather(astype(a, u8), 0, ids).to_vector<std::int32_t>(), (Ints{7, 255, 255, 5}));
  EXPECT_EQ(take(greater(a, array({5.5f})), ids).to_vector<std::int32_t>(), (Ints{1, 1, 1, 0}));
  const std::vector<std::uint8_t> bytes{2, 1};
  EXPECT_TRUE(all_close(take(a, array(std::span<const std::uint8_t>(bytes), {2})), std::vector<double>{7, 6}, 0));
}

TEST_P(IndexingTest, gather_picks_along_an_axis) {
  const auto values = random_values(60);
  const Array a = real_array(values, {3, 5, 4}, f32);
  for (int axis = 0; axis < 3; ++axis) {
    Shape shape{2, 3, 3};
    shape[axis] = 6;
    const Ints ids = random_ids(shape.size(), a.shape()[axis]);
    std::vector<double> want;
    for (int i = 0, n = 0; i < shape[0]; ++i)
      for (int j = 0; j < shape[1]; ++j)
        for (int k = 0; k < shape[2]; ++k, ++n) {
          int at[3] = {i, j, k};
          at[axis] = ids[static_cast<std::size_t>(n)];
          want.push_back(values[static_cast<std::size_t>((at[0] * 5 + at[1]) * 4 + at[2])]);
        }
    EXPECT_TRUE(all_close(gather(a, axis, index_array(ids, shape)), want, 1e-7)) << axis;
  }
}

TEST_P(IndexingTest, scatter_add_adds_in_place_of_gather) {
  for (const Shape& shape : {Shape{4, 5, 300}, Shape{17, 1, 1}, Shape{3, 700, 2}})
    for (int axis = 0; axis < 3; ++axis) {
      Shape from = shape;
      from[axis] = 9;
      const auto base = random_values(shape.size()), src = random_values(from.size(), 2);
      const Ints ids = random_ids(from.size(), shape[axis]);
      std::vector<double> want = base;
      std::size_t n = 0;
      for (std::int64_t i = 0; i < from[0]; ++i)
        for (std::int64_t j = 0; j < from[1]; ++j)
          for (std::int64_t k = 0; k < from[2]; ++k, ++n) {
            std::int64_t at[3] = {i, j, k};
            at[axis] = ids[n];
            want[static_cast<std::size_t>((at[0] * shape[1] + at[1]) * shape[2] + at[2])] += src[n];
          }
      const Array y =
          scatter_add(real_array(base, shape, f32), axis, index_array(ids, from), real_array(src, from, f32));
      EXPECT_TRUE(all_close(y, want, sum_tolerance(f32, 9))) << shape.to_string() << " " << axis;
    }
}

TEST_P(IndexingTest, scatter_add_leaves_what_the_index_does_not_reach) {
  const Array y = scatter_add(array({1, 2, 3, 4, 5, 6}, {2, 3}), 0, index_array({1, 1}, {1, 2}),
                              array({10, 20, 30, 40, 50, 60, 70, 80}, {2, 4}));
  EXPECT_TRUE(all_close(y, std::vector<double>{1, 2, 3, 14, 25, 6}, 0));
  const Array half = astype(array({1, 2}), bf16);
  EXPECT_EQ(scatter_add(half, 0, index_array({1, 1}, {2}), half).dtype(), bf16);
  EXPECT_TRUE(all_close(scatter_add(half, 0, index_array({1, 1}, {2}), half), std::vector<double>{1, 5}, 0));
  EXPECT_TRUE(same_bytes(scatter_add(half, 0, empty({0}, i32), half), half));
}

TEST_P(IndexingTest, an_index_outside_spoils_what_it_asks_for) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Array> wrt{array({1, 2, 3, 4}, {2, 2})};
  const Array y = embedding(index_array({1, 2}, {2}), wrt[0]);
  EXPECT_TRUE(all_close(gradients(sum(slice(y, 0, 0, 1)), wrt)[0], std::vector<double>{0, 0, 1, 1}, 0));
  EXPECT_TRUE(all_close(embedding(index_array({1, 2}, {2}), wrt[0]), std::vector<double>{3, 4, nan, nan}, 0));
  const Array sums = scatter_add(wrt[0], 0, index_array({1, 2}, {1, 2}), array({5, 6}, {1, 2}));
  EXPECT_TRUE(all_close(sums, std::vector<double>{1, nan, 8, nan}, 0));
  const Array line = scatter_add(array({1, 2, 3}), 0, index_array({0, 3}, {2}), array({1, 1}));
  EXPECT_TRUE(all_close(line, std::vector<double>{nan, nan, nan}, 0));
}

TEST_P(IndexingTest, negative_indices_count_from_the_end_in_one_launch) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto launches_of = [&](const Array& y) {
    const std::uint64_t before = engine().plans().launches;
    y.wait();
    return engine().plans().launches - before;
  };
  for (const Shape& shape : {Shape{3, 5, 7}, Shape{1, 6, 1}, Shape{2, 19, 33}, Shape{70, 4, 2}})
    for (int axis = 0; axis < 3; ++axis) {
      SCOPED_TRACE(shape.to_string() + " " + std::to_string(axis));
      const auto depth = static_cast<int>(shape[axis]);
      Shape from = shape;
      from[axis] = 9;
      const Ints ids = random_ids(from.size(), depth), line = random_ids(9, depth, 6);
      Ints from_end = ids, line_from_end = line;
      for (std::size_t i = 0; i < ids.size(); i += 2) from_end[i] -= depth;
      for (std::size_t i = 0; i < line.size(); i += 2) line_from_end[i] -= depth;
      const Array a = real_array(random_values(shape.size()), shape, f32).wait();
      const Array src = real_array(random_values(from.size(), 2), from, f32).wait();
      const std::vector<Array> wrt{a, src};
      const auto made = [&](const Ints& all, const Ints& few) {
        const Array index = index_array(all, from).wait(), places = index_array(few, {9}).wait();
        const Array taken = take(a, places, axis), gathered = gather(a, axis, index),
                    sums = scatter_add(a, axis, index, src), put = scatter(a, axis, index, src);
        for (const Array& y : {taken, gathered, put}) EXPECT_EQ(launches_of(y), 1u);
        std::vector<Array> results{taken, gathered, sums, put};
        for (const Array& y : {taken, gathered, sums, put})
          for (const Array& d : gradients(sum(square(y)) + sum(src) + sum(a), wrt)) results.push_back(d);
        return results;
      };
      const std::vector<Array> want = made(ids, line), got = made(from_end, line_from_end);
      for (std::size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(same_bytes(got[i], want[i])) << i;
    }
  // -D is the first element, what lies before it is outside; ids of an embedding count from the front alone.
  const std::vector<Array> wrt{array({1, 2, 3}, {3, 1})};
  const Array ends = index_array({-3, -4, 2, 3, std::numeric_limits<std::int32_t>::min()}, {5});
  const Array taken = take(wrt[0], ends), gathered = gather(wrt[0], 0, reshape(ends, {5, 1}));
  for (const Array& y : {taken, gathered}) {
    EXPECT_TRUE(all_close(y, std::vector<double>{1, nan, 3, nan, nan}, 0));
    EXPECT_TRUE(all_close(gradients(sum(y), wrt)[0], std::vector<double>{1, 0, 1}, 0));
  }
  const Array rows = embedding(index_array({-3, 2}, {2}), wrt[0]);
  EXPECT_TRUE(all_close(rows, std::vector<double>{nan, 3}, 0));
  EXPECT_TRUE(all_close(gradients(sum(rows), wrt)[0], std::vector<double>{0, 0, 1}, 0));
  EXPECT_TRUE(all_close(scatter_add(zeros({3}), 0, index_array({-3, -1, 1}, {3}), array({1, 2, 4})),
                        std::vector<double>{1, 4, 2}, 0));
  EXPECT_TRUE(all_close(scatter_add(zeros({2, 3}), 1, index_array({-3, -1, 1, 0, -4, 2}, {2, 3}), ones({2, 3})),
                        std::vector<double>{1, 1, 1, nan, nan, nan}, 0));
}

// Sums at the indices of one axis that all lines share, with and without neighbours behind the axis.
TEST_P(IndexingTest, sums_of_lines_are_those_of_sorted_indices) {
  const Ints ids = random_ids(60, 7);
  const auto dy = random_values(5 * 60, 3);
  for (const Dtype dtype : {f32, f16}) {
    const Array a = zeros({5, 7}, dtype), index = index_array(ids, {60}), weight = real_array(dy, {5, 60}, dtype);
    const Array line = gradients(sum(take(a, index, 1) * weight), std::vector<Array>{a})[0];
    // Of two columns the first ones: these indices are sorted.
    const Array wide = zeros({5, 7, 2}, dtype), both = stack({weight, weight}, 2);
    const Array sorted = gradients(sum(take(wide, index, 1) * both), std::vector<Array>{wide})[0];
    EXPECT_TRUE(same_bytes(line, squeeze(slice(sorted, 2, 0, 1), 2))) << name_of(dtype);
  }
}

TEST_P(IndexingTest, one_hot_marks_one_class) {
  const Array y = one_hot(index_array({2, 0, 5}, {3}), 3);
  EXPECT_TRUE(all_close(y, std::vector<double>{0, 0, 1, 1, 0, 0, 0, 0, 0}, 0));
  EXPECT_EQ(one_hot(empty({0, 2}, i32), 4, i32).shape(), (Shape{0, 2, 4}));
}

TEST_P(IndexingTest, wrong_arguments_are_refused) {
  const Array table = zeros({4, 3}), ids = index_array({1, 2}, {2});
  EXPECT_ERROR((embedding(ids, zeros({4}))), ArgumentError,
               "embedding: needs a floating table of two axes, table is f32 [4]");
  EXPECT_ERROR((embedding(zeros({2}), table)), ArgumentError,
               "embedding: needs i32, i64 or u8 indices, ids is f32 [2]");
  EXPECT_ERROR((embedding(ids, table, 4)), ArgumentError,
               "embedding: padding_index must be a row of the table, got 4, table is f32 [4, 3]");
  EXPECT_ERROR((embedding(ids, zeros({0, 3}))), ArgumentError, "embedding: needs elements to take, a is f32 [0, 3]");
  EXPECT_ERROR((take(table, ids, 2)), ArgumentError, "take: axis 2 is out of range for a f32 [4, 3]");
  EXPECT_ERROR((gather(table, 0, ids)), ArgumentError,
               "gather: index must fit into a in every axis but 0, a is f32 [4, 3], index is i32 [2]");
  EXPECT_ERROR((scatter_add(table, 0, reshape(ids, {2, 1}), zeros({1, 1}))), ArgumentError,
               "scatter_add: index must fit into src, and into a in every axis but 0, a is f32 [4, 3], index is i32 "
               "[2, 1], src is f32 [1, 1]");
  EXPECT_ERROR((scatter_add(table, 0, reshape(ids, {2, 1}), zeros({2, 1}, i32))), ArgumentError,
               "scatter_add: needs src of f32, src is i32 [2, 1]");
  EXPECT_ERROR((one_hot(ids, 0)), ArgumentError, "one_hot: classes must be at least 1 and fit i32, got 0");
}

class SmallShapesIndexingTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesIndexingTest);

TEST_P(SmallShapesIndexingTest, take_gather_and_scatter_add) {
  using In = std::span<const Array>;
  const Array ids = index_array({2, 0, 6, 2, 2}, {5});
  run([&](In x) { return embedding(ids, x[0]) + take(x[0], ids, 0); }, {{7, 37}});
  run([&](In x) { return take(x[0], ids, 1); }, {{3, 7, 1}});
  const Array index = index_array(random_ids(15, 3), {5, 3});
  run([&](In x) { return gather(x[0], 0, index) + scatter_add(x[0], 0, index, x[1]); }, {{5, 3}, {5, 3}});
}

}  // namespace
}  // namespace samebytes::testing
