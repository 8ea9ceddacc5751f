// Parts of cells written in place.
#include "samebytes/ops/update_slice.h"

#include <gtest/gtest.h>

#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

class UpdateSliceTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(UpdateSliceTest);

TEST_P(UpdateSliceTest, writes_the_part_and_nothing_else) {
  for (const Dtype dtype : real_dtypes())
    for (const int axis : {0, 1, 2}) {
      const Shape shape{3, 7, 19};
      Shape part = shape;
      part[axis] = 2;
      const auto old = random_values(shape.size(), 1), fresh = random_values(part.size(), 2);
      const Array target = cell(real_array(old, shape, dtype), "target");
      const std::int64_t start = shape[axis] - 2;
      const Array after = update_slice(target, real_array(fresh, part, dtype), axis, start);
      std::vector<double> want = old;
      for (std::int64_t i = 0, at = 0; i < shape.size(); ++i) {
        const std::int64_t index = axis == 0 ? i / 133 : axis == 1 ? i / 19 % 7 : i % 19;
        if (index >= start) want[static_cast<std::size_t>(i)] = fresh[static_cast<std::size_t>(at++)];
      }
      EXPECT_TRUE(all_close(after, want, 1e-6));
      EXPECT_TRUE(same_bytes(target, after));
    }
}

TEST_P(UpdateSliceTest, another_start_is_no_other_plan) {
  const Array target = cell(zeros({2, 16, 3}), "target");
  const auto step = [&](std::int64_t start) {
    const Array value = full({2, 1, 3}, static_cast<double>(start) + 1);
    return sum(update_slice(target, value, 1, start)).value();
  };
  EXPECT_EQ(step(0), 6);
  EXPECT_EQ(step(1), 18);
  const auto plans = engine().plans().plans_made;
  EXPECT_EQ(step(5), 54);
  EXPECT_EQ(step(6), 96);
  EXPECT_EQ(engine().plans().plans_made, plans);
}

TEST_P(UpdateSliceTest, parts_written_one_after_the_other_in_one_run_are_all_there) {
  const Array target = cell(zeros({4}), "target");
  const Array one = update_slice(target, ones({2}), 0, 0);
  const Array two = update_slice(target, sum(one, {}, true) * array({5.0f}), 0, 3);
  EXPECT_EQ(two.to_vector<float>(), (std::vector<float>{1, 1, 0, 10}));
  EXPECT_EQ(target.to_vector<float>(), (std::vector<float>{1, 1, 0, 10}));
}

TEST_P(UpdateSliceTest, a_reader_of_the_result_keeps_it_when_the_cell_goes_on) {
  const Array target = cell(zeros({4}), "target");
  const Array late = update_slice(target, ones({2}), 0, 0) * 2.0;
  const Array view = reshape(target, {2, 2});
  assign(target, full({4}, 7));
  EXPECT_EQ((view * 1.0).to_vector<float>(), (std::vector<float>{0, 0, 0, 0}));
  EXPECT_EQ(late.to_vector<float>(), (std::vector<float>{2, 2, 0, 0}));  // ran before the cell was overwritten
}

TEST_P(UpdateSliceTest, the_gradient_of_the_value_is_its_part) {
  const Array target = cell(zeros({5}), "target");
  const std::vector<Array> x{array({1, 2})};
  const Array y = update_slice(target, x[0] * 3.0, 0, 1);
  const Array d = gradients(sum(y * array({1, 2, 3, 4, 5})), x)[0];
  EXPECT_EQ(d.to_vector<float>(), (std::vector<float>{6, 9}));
}

TEST_P(UpdateSliceTest, wrong_arguments_are_refused) {
  const Array target = cell(zeros({2, 4}), "target");
  EXPECT_ERROR((update_slice(zeros({2}), zeros({1}), 0, 0)), ArgumentError,
               "update_slice: needs a cell of f32 or f64, cell is f32 [2]");
  EXPECT_ERROR((update_slice(target, zeros({2, 2}), 2, 0)), ArgumentError,
               "update_slice: axis 2 is out of range for cell f32 [2, 4]");
  EXPECT_ERROR((update_slice(target, zeros({1, 2}), 1, 0)), ArgumentError,
               "update_slice: the value must agree with the cell in all axes but 1, cell is f32 [2, 4], value is f32 "
               "[1, 2]");
  EXPECT_ERROR((update_slice(target, zeros({2, 2}), 1, 3)), ArgumentError,
               "update_slice: [3, 5) is not within axis 1 of cell f32 [2, 4]");
}

class SmallShapesUpdateSliceTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesUpdateSliceTest);

TEST_P(SmallShapesUpdateSliceTest, parts_of_cells) {
  const Array target = cell(zeros({3, 5, 7}), "target");
  EXPECT_EQ(update_slice(target, ones({3, 3, 7}), 1, 2).to_vector<float>()[14], 1.0f);
  EXPECT_EQ(target.to_vector<float>()[13], 0.0f);
}

}  // namespace
}  // namespace samebytes::testing
