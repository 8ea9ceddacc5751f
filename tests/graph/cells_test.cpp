// Cells keep their identity, graphs read the value a cell had when they were built, and flat cells lie under many.
#include <gtest/gtest.h>

#include <cmath>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

class CellsTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(CellsTest);

TEST_P(CellsTest, an_update_overwrites_in_place) {
  const Array w = cell(array({1, 2, 3}), "w");
  EXPECT_TRUE(is_cell(w));
  EXPECT_EQ(cell_name(w), "w");
  assign(w, w * 2.0);
  EXPECT_EQ(w.to_vector<float>(), (std::vector<float>{2, 4, 6}));
  const void* before = w.host<float>().data();
  assign(w, w + 1.0);
  EXPECT_EQ(w.host<float>().data(), before);
  EXPECT_EQ(w.to_vector<float>(), (std::vector<float>{3, 5, 7}));
}

TEST_P(CellsTest, a_clone_has_the_value_of_its_moment_and_goes_its_own_way) {
  const Array w = cell(array({1, 2, 3}), "w");
  const Array twin = clone_cell(w);
  EXPECT_EQ(cell_name(twin), "w");
  assign(w, w * 2.0);
  EXPECT_EQ(twin.to_vector<float>(), (std::vector<float>{1, 2, 3}));
  assign(twin, twin - 1.0);
  EXPECT_EQ(w.to_vector<float>(), (std::vector<float>{2, 4, 6}));
  EXPECT_ERROR(clone_cell(w + 1.0), ArgumentError, "clone_cell: needs a cell, the array is f32 [3]");
}

TEST_P(CellsTest, gaps_of_a_pack_are_zero_where_another_of_these_places_has_values) {
  const std::int64_t offsets[] = {0};
  const auto sum_of_pack = [&](const Array& x) {
    const Array twice = x * 2.0;
    return sum(pack(std::span(&twice, 1), offsets, 32));
  };
  EXPECT_EQ(sum_of_pack(ones({5})).value(), 10.0);
  EXPECT_EQ(sum_of_pack(ones({3})).value(), 6.0);
}

TEST_P(CellsTest, the_initial_value_stays_the_users_own) {
  const Array initial = array({1, 2});
  const Array w = cell(initial, "w");
  assign(w, w * 10.0);
  EXPECT_EQ(initial.to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST_P(CellsTest, readers_in_the_same_run_see_the_old_value) {
  const Array w = cell(array({1, 2}), "w");
  const Array loss = sum(w * w);
  eval({update(w, w * 10.0), loss});
  EXPECT_EQ(loss.value(), 5.0);
  EXPECT_EQ(w.to_vector<float>(), (std::vector<float>{10, 20}));
}

TEST_P(CellsTest, a_wanted_reader_runs_before_its_cell_is_overwritten) {
  const Array w = cell(array({1, 2}), "w");
  const Array kept = w * 3.0;  // has a handle, so it is wanted
  assign(w, w * 10.0);
  EXPECT_EQ(kept.to_vector<float>(), (std::vector<float>{3, 6}));
}

TEST_P(CellsTest, an_update_that_waits_while_another_one_runs_names_cell_and_evaluation) {
  const Array w = cell(array({1, 2}), "w");
  const Array late = update(w, w + 1.0);  // updates are not run unless they are asked for
  assign(w, w * 10.0);
  try {
    late.eval();
    FAIL() << "nothing was thrown";
  } catch (const ArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("reads w as it was"), std::string::npos) << error.what();
  }
}

TEST_P(CellsTest, several_updates_of_one_shape_are_one_launch) {
  const Array a = cell(zeros({1000}), "a"), b = cell(ones({1000}), "b");
  eval({a, b});
  const auto before = engine().plans().launches;
  const auto updates = [&] {
    const Array next = a * 0.9 + b;
    return std::vector<Array>{update(a, next), update(b, b * 0.5 + next)};
  };
  eval(updates());
  EXPECT_EQ(engine().plans().launches - before, 1u);
  EXPECT_EQ(a.to_vector<float>()[7], 1.0f);
  EXPECT_EQ(b.to_vector<float>()[999], 1.5f);
}

TEST_P(CellsTest, flat_cells_lie_under_their_parts) {
  const Array a = cell(array({1, 2, 3}), "a"), b = cell(array({4, 5}, {2, 1}), "b");
  const FlatCells flat = flatten_cells(std::vector<Array>{a, b}, "all");
  EXPECT_EQ(flat.offsets[1] % 32, 0);  // 128 bytes
  assign(flat.values, flat.values * 2.0);
  EXPECT_EQ(a.to_vector<float>(), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(b.to_vector<float>(), (std::vector<float>{8, 10}));
  EXPECT_EQ(flat.values.to_vector<float>()[5], 0.0f);  // gaps stay zero
  EXPECT_THROW(flatten_cells(std::vector<Array>{a}, "again"), ArgumentError);
}

TEST_P(CellsTest, packed_gradients_are_written_by_their_producers) {
  const Array a = cell(array({1, 2, 3}), "a"), b = cell(array({4, 5}), "b");
  const FlatCells flat = flatten_cells(std::vector<Array>{a, b}, "all");
  const auto step = [&] {
    const std::vector<Array> d = gradients(sum(a * a) + sum(exp(b)), std::vector<Array>{a, b});
    return update(flat.values, flat.values - pack(d, flat.offsets, flat.values.size()) * 0.5);
  };
  const Array keep = step();
  keep.eval();
  EXPECT_EQ(a.to_vector<float>(), (std::vector<float>{0, 0, 0}));
  EXPECT_NEAR(b.to_vector<float>()[0], 4 - 0.5 * std::exp(4.0), 1e-5);
}

TEST_P(CellsTest, mistakes_are_named) {
  const Array w = cell(array({1, 2}), "w");
  EXPECT_THROW(update(array({1, 2}), array({1, 2})), ArgumentError);
  EXPECT_THROW(update(w, array({1, 2, 3})), ArgumentError);
  EXPECT_THROW(cell(Array(), "nothing"), ArgumentError);
  EXPECT_THROW(pack(std::vector<Array>{w}, std::vector<std::int64_t>{1}, 2), ArgumentError);
}

}  // namespace
}  // namespace samebytes::testing
