#include "samebytes/ops/update_parts.h"

#include <gtest/gtest.h>

#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

class UpdatePartsTest : public OnDevice {
 protected:
  Array flat_ = cell(array({1, 2, 3, 4, 5, 6, 7, 8}, {8}), "flat");
  const std::vector<std::int64_t> offsets_{0, 4};
};
SAMEBYTES_ON_EVERY_DEVICE(UpdatePartsTest);

TEST_P(UpdatePartsTest, parts_are_overwritten_and_what_lies_between_them_stays) {
  const EngineScope scope(engine());
  const Array a = array({1, 2, 3}, {3}), b = array({1, 2, 3, 4}, {2, 2});
  const std::vector<Array> parts{a * 10.0, matmul(b, b)};
  Array after = update_parts(flat_, parts, offsets_);
  EXPECT_EQ(after.to_vector<float>(), (std::vector<float>{10, 20, 30, 4, 7, 10, 15, 22}));
  EXPECT_EQ(flat_.to_vector<float>(), (std::vector<float>{10, 20, 30, 4, 7, 10, 15, 22}));
}

TEST_P(UpdatePartsTest, who_reads_the_cell_in_the_same_run_reads_what_it_was) {
  const EngineScope scope(engine());
  const Array before = flat_ * 2.0;
  const Array a = array({1, 2, 3}, {3}), b = array({1, 2, 3, 4}, {2, 2});
  const Array total = sum(flat_);
  eval({update_parts(flat_, std::vector<Array>{a + 1.0, matmul(b, b)}, offsets_), total});
  EXPECT_EQ(total.value(), 36.0);
  EXPECT_EQ(before.to_vector<float>(), (std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16}));
  EXPECT_EQ(flat_.to_vector<float>(), (std::vector<float>{2, 3, 4, 4, 7, 10, 15, 22}));
}

TEST_P(UpdatePartsTest, a_part_that_reads_the_cell_reads_what_it_was) {
  const EngineScope scope(engine());
  const Array tail = slice(flat_, 0, 4, 8), head = slice(flat_, 0, 0, 4);
  eval({update_parts(flat_, std::vector<Array>{tail + 0.0, head + 0.0}, offsets_)});
  EXPECT_EQ(flat_.to_vector<float>(), (std::vector<float>{5, 6, 7, 8, 1, 2, 3, 4}));
}

TEST_P(UpdatePartsTest, wrong_arguments_are_named) {
  const EngineScope scope(engine());
  const Array a = array({1, 2, 3, 4, 5}, {5});
  EXPECT_ERROR((update_parts(flat_, std::vector<Array>{a, a}, offsets_)), ArgumentError,
               "update_parts: offsets must ascend without overlap within 8 elements, got 4");
  EXPECT_ERROR((update_parts(a, std::vector<Array>{a}, std::vector<std::int64_t>{0})), ArgumentError,
               "update_parts: needs a cell, the array is f32 [5]");
  EXPECT_ERROR(
      (update_parts(flat_, std::vector<Array>{astype(a, i32)}, std::vector<std::int64_t>{0})), ArgumentError,
      "update_parts: needs a cell of rank 1 and arrays of its dtype, flat is f32 [8], the first array is i32 [5]");
}

}  // namespace
}  // namespace samebytes::testing
