// An array means the value that it had when the expression was written, whatever is evaluated, updated or written by
// the host in between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

class ValuesTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(ValuesTest);

constexpr std::int64_t kSide = 37;

std::vector<float> counted(std::int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

Array square_cell(const char* name, float first = 0) {
  std::vector<float> values = counted(kSide * kSide);
  for (float& v : values) v += first;
  return cell(array(values, {kSide, kSide}), name);
}

std::vector<float> transposed(const std::vector<float>& a) {
  std::vector<float> result(a.size());
  for (std::size_t i = 0; i < kSide; ++i)
    for (std::size_t j = 0; j < kSide; ++j) result[j * kSide + i] = a[i * kSide + j];
  return result;
}

using Floats = std::vector<float>;
using ::testing::HasSubstr;

// What an op gives that has nothing to do is a value too.
TEST_P(ValuesTest, an_op_without_work_does_not_hand_out_the_cell) {
  const Array c = cell(array(counted(6), {2, 3}), "c"),
              whole = cell(array(std::vector<std::int32_t>{1, 2, 3}, {3}), "whole");
  const std::vector<Array> values{roll(c, 3, 1),  reshape(c, {2, 3}),       broadcast_to(c, {2, 3}),
                                  astype(c, f32), pad(c, {{0, 0}, {0, 0}}), repeat_interleave(c, 1, 0),
                                  pow(c, 1.0),    dropout(c, 0.0),          sum_to(c, {2, 3})};
  const Array rounded = floor(whole);
  assign(c, c * 10.0);
  c.mutable_host<float>()[0] = 77;
  assign(whole, whole * 2);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i].to_vector<float>(), counted(6)) << i;
  EXPECT_EQ(rounded.to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(c.to_vector<float>(), (Floats{77, 20, 30, 40, 50, 60}));
}

TEST_P(ValuesTest, what_was_passed_through_stop_gradient_stays_a_constant) {
  const Array p = cell(array(counted(4), {4}), "p"), q = cell(array(counted(4), {4}), "q");
  const Array kept = stop_gradient(p * p);
  kept.eval();
  assign(p, p * 2.0);
  EXPECT_EQ(gradients(sum(kept * p * q), std::vector<Array>{q})[0].to_vector<float>(), (Floats{2, 16, 54, 128}));
}

// ---- updates that read their own cell

TEST_P(ValuesTest, a_cell_can_be_assigned_its_own_transpose) {
  const Array c = square_cell("c");
  const Floats before = c.to_vector<float>();
  assign(c, transpose(c));
  EXPECT_EQ(c.to_vector<float>(), transposed(before));
  assign(c, transpose(c) * 2.0 - c);
  const Floats now = transposed(before);
  Floats want(now.size());
  for (std::size_t i = 0; i < want.size(); ++i) want[i] = before[i] * 2 - now[i];
  EXPECT_EQ(c.to_vector<float>(), want);
}

TEST_P(ValuesTest, a_cell_can_be_assigned_itself_backwards) {
  const Array c = cell(array(counted(1001), {1001}), "c");
  assign(c, flip(c, {0}));
  Floats want = counted(1001);
  std::reverse(want.begin(), want.end());
  EXPECT_EQ(c.to_vector<float>(), want);
  assign(c, c + flip(c, {0}));
  EXPECT_EQ(c.to_vector<float>(), Floats(1001, 1002.0f));
}

TEST_P(ValuesTest, a_cell_can_be_assigned_itself_less_a_part_of_it) {
  const Array c = cell(array(counted(1001), {1001}), "c");
  assign(c, c - slice(c, 0, 0, 1));
  Floats want = counted(1001);
  for (float& v : want) v -= 1;
  EXPECT_EQ(c.to_vector<float>(), want);
  assign(c, c * mean(c) + sum(c));
  for (float& v : want) v = v * 500.0f + 500500.0f;
  EXPECT_EQ(c.to_vector<float>(), want);
}

TEST_P(ValuesTest, a_cell_can_be_shifted_by_one) {
  const Array c = cell(array(counted(1001), {1001}), "c");
  assign(c, concat(std::vector<Array>{slice(c, 0, 1, 1001), slice(c, 0, 0, 1)}, 0));
  Floats want = counted(1001);
  std::rotate(want.begin(), want.begin() + 1, want.end());
  EXPECT_EQ(c.to_vector<float>(), want);
}

TEST_P(ValuesTest, two_cells_can_be_swapped) {
  const Array a = square_cell("a"), b = square_cell("b", 5000);
  const Floats was_a = a.to_vector<float>(), was_b = b.to_vector<float>();
  eval({update(a, b), update(b, a)});
  EXPECT_EQ(a.to_vector<float>(), was_b);
  EXPECT_EQ(b.to_vector<float>(), was_a);
}

TEST_P(ValuesTest, two_cells_can_be_swapped_through_transposes) {
  const Array a = square_cell("a"), b = square_cell("b", 5000);
  const Floats was_a = a.to_vector<float>(), was_b = b.to_vector<float>();
  eval({update(a, transpose(b)), update(b, transpose(a))});
  EXPECT_EQ(a.to_vector<float>(), transposed(was_b));
  EXPECT_EQ(b.to_vector<float>(), transposed(was_a));
  eval({update(a, transpose(b) + 1.0), update(b, 2.0 * transpose(a))});
  Floats want_a = was_a, want_b = was_b;
  for (float& v : want_a) v += 1;
  for (float& v : want_b) v *= 2;
  EXPECT_EQ(a.to_vector<float>(), want_a);
  EXPECT_EQ(b.to_vector<float>(), want_b);
}

TEST_P(ValuesTest, cells_of_different_shapes_can_read_each_other) {
  const Array a = square_cell("a"), row = cell(array(counted(kSide), {kSide}), "row");
  const Floats was = a.to_vector<float>();
  eval({update(a, a + row), update(row, sum(a, {0}))});
  const Floats now = a.to_vector<float>(), sums = row.to_vector<float>();
  for (std::size_t j = 0; j < kSide; ++j) {
    float total = 0;
    for (std::size_t i = 0; i < kSide; ++i) {
      EXPECT_EQ(now[i * kSide + j], was[i * kSide + j] + static_cast<float>(j + 1));
      total += was[i * kSide + j];
    }
    EXPECT_EQ(sums[j], total);
  }
}

TEST_P(ValuesTest, a_part_of_a_flat_cell_is_read_as_it_was) {
  const Array a = cell(array({1, 2, 3}), "a"), b = cell(array({4, 5}), "b");
  const FlatCells flat = flatten_cells(std::vector<Array>{a, b}, "all");
  const Array u = update(flat.values, flat.values * 2.0);
  const Array late = slice(u, 0, 0, 3) - a;
  eval({u, late});
  EXPECT_EQ(late.to_vector<float>(), (Floats{1, 2, 3}));
  EXPECT_EQ(a.to_vector<float>(), (Floats{2, 4, 6}));
}

TEST_P(ValuesTest, two_updates_of_one_cell_in_one_run_are_an_error) {
  const Array c = cell(array({1, 2}), "counter");
  const Array one = update(c, c + 1.0), two = update(c, c + 10.0);
  EXPECT_THAT(message_of<ArgumentError>([&] { eval({one, two}); }), HasSubstr("overwrite counter in one run"));
  one.eval();
  EXPECT_EQ(c.to_vector<float>(), (Floats{2, 3}));
  const Array part = cell(array({1, 2}), "part");
  const FlatCells flat = flatten_cells(std::vector<Array>{part}, "flat");
  EXPECT_THAT(message_of<ArgumentError>([&] {
                eval({update(flat.values, flat.values * 2.0), update(part, part * 3.0)});
              }),
              HasSubstr("in one run"));
}

// ---- readers beside an update

TEST_P(ValuesTest, what_is_made_of_an_update_and_the_old_value_sees_both) {
  const Array p = cell(array({1, 1}), "p");
  const Array u = update(p, 3.0 * p);
  EXPECT_EQ((u - p).to_vector<float>(), (Floats{2, 2}));
  EXPECT_EQ(p.to_vector<float>(), (Floats{3, 3}));
  const Array v = update(p, p + 1.0);
  EXPECT_EQ(concat(std::vector<Array>{v, p}, 0).to_vector<float>(), (Floats{4, 4, 3, 3}));
}

TEST_P(ValuesTest, a_product_of_an_update_and_the_old_value_sees_both) {
  const Array p = cell(ones({2, 2}), "p");
  const Array u = update(p, 3.0 * p);
  EXPECT_EQ(sum(matmul(u, p)).value(), 24.0);
  const Array w = update(p, p + 1.0);
  EXPECT_EQ(sum(matmul(p, w)).value(), 96.0);
}

TEST_P(ValuesTest, the_result_of_an_update_stays_when_its_cell_goes_on) {
  const Array p = cell(array({1, 2}), "p");
  const Array u = update(p, 3.0 * p);
  u.eval();
  assign(p, p + 100.0);
  EXPECT_EQ(u.to_vector<float>(), (Floats{3, 6}));
  EXPECT_EQ(p.to_vector<float>(), (Floats{103, 106}));
}

TEST_P(ValuesTest, a_view_of_a_cell_stays_what_it_was) {
  const Array c = square_cell("c");
  const Floats was = c.to_vector<float>();
  const Array t = transpose(c), first = slice(c, 0, 0, 1), inner = slice(transpose(c), 0, 3, 4);
  assign(c, zeros({kSide, kSide}));
  EXPECT_EQ(t.to_vector<float>(), transposed(was));
  EXPECT_EQ(first.to_vector<float>(), Floats(was.begin(), was.begin() + kSide));
  EXPECT_EQ(inner.to_vector<float>()[2], was[2 * kSide + 3]);
  EXPECT_EQ(sum(abs(c)).value(), 0.0);
}

TEST_P(ValuesTest, readers_of_running_statistics_see_those_before_the_batch) {
  const Array mean = cell(zeros({3}), "running_mean"), variance = cell(ones({3}), "running_var");
  const Array weight = cell(ones({3}), "w"), bias = cell(zeros({3}), "b");
  const Array x = array(counted(12), {4, 3});
  const Array y = batch_norm_train(x, weight, bias, mean, variance, {.momentum = 0.5f});
  const Array seen = mean + 1.0, ratio = variance * 1.0;
  eval({y, seen, ratio});
  EXPECT_EQ(seen.to_vector<float>(), (Floats{1, 1, 1}));
  EXPECT_EQ(ratio.to_vector<float>(), (Floats{1, 1, 1}));
  EXPECT_NE(mean.to_vector<float>(), (Floats{0, 0, 0}));
}

// ---- writes by the host

TEST_P(ValuesTest, a_write_by_the_host_changes_nothing_that_was_written_before) {
  for (const bool of_cell : {false, true}) {
    const Array x = of_cell ? cell(array({1, 2}), "x") : array({1, 2});
    const Array twice = x * 2.0, deep = exp(x * 0.0) + x, view = flip(x, {0});
    x.mutable_host<float>()[0] = 50;
    const Array after = x * 2.0;
    EXPECT_EQ(twice.to_vector<float>(), (Floats{2, 4}));
    EXPECT_EQ(deep.to_vector<float>(), (Floats{2, 3}));
    EXPECT_EQ(view.to_vector<float>(), (Floats{2, 1}));
    EXPECT_EQ(after.to_vector<float>(), (Floats{100, 4}));
  }
}

TEST_P(ValuesTest, a_write_to_an_evaluated_array_changes_nothing_that_was_written_before) {
  const Array x = array({1, 2}), y = x + 1.0;
  y.eval();
  const Array twice = y * 2.0;
  y.mutable_host<float>()[0] = 50;
  EXPECT_EQ(twice.to_vector<float>(), (Floats{4, 6}));
  EXPECT_EQ((y * 2.0).to_vector<float>(), (Floats{100, 6}));
}

TEST_P(ValuesTest, a_write_to_a_part_of_a_flat_cell_is_one_to_the_whole) {
  const Array a = cell(array({1, 2, 3}), "a"), b = cell(array({4, 5}), "b");
  const FlatCells flat = flatten_cells(std::vector<Array>{a, b}, "all");
  const Array total = sum(flat.values), of_b = b * 1.0;
  a.mutable_host<float>()[0] = 100;
  EXPECT_EQ(total.value(), 15.0);
  flat.values.mutable_host<float>()[flat.offsets[1]] = 40;
  EXPECT_EQ(of_b.to_vector<float>(), (Floats{4, 5}));
}

// ---- chains

TEST_P(ValuesTest, a_sum_that_a_loop_carries_on_does_not_grow) {
  const Array x = array({0.5f});
  Array total = zeros({1});
  std::uint64_t plans = 0;
  for (int step = 0; step < 200; ++step) {
    const Array loss = x * static_cast<double>(step);
    loss.eval();
    total = total + loss;
    if (step == 10) plans = engine().plans().plans_made;
  }
  EXPECT_EQ(engine().plans().plans_made, plans);  // a chain would need a new one each time it grows
  const auto before = engine().plans().nodes_fused;
  EXPECT_EQ(total.value(), 0.5 * 199 * 200 / 2);
  EXPECT_LE(engine().plans().nodes_fused - before, 4u);
}

}  // namespace
}  // namespace samebytes::testing
