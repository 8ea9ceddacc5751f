// Cells over memory of the user's own: nothing is copied, and updates overwrite it.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "samebytes/optim.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

class CellOverTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(CellOverTest);

TEST_P(CellOverTest, is_the_memory_itself) {
  std::vector<float> memory{1, 2, 3, 4};
  std::atomic<bool> is_gone = false;
  {
    Adoption verdict;
    const Array weight = cell_over(adopt(
                                       memory.data(), {2, 2}, f32, [&] { is_gone = true; }, &verdict),
                                   "weight");
    EXPECT_TRUE(is_cell(weight));
    EXPECT_EQ(cell_name(weight), "weight");
    EXPECT_EQ(sum(weight).value(), 10.0);
    const Array before = weight * 2.0;  // means the value that the cell has now
    assign(weight, full({2, 2}, 5.0));
    EXPECT_EQ(sum(weight).value(), 20.0);
    EXPECT_EQ(sum(before).value(), 20.0);
    if (verdict.adopted) {
      EXPECT_EQ(weight.host<float>()[3], 5.0f);
    }
  }
  engine().wait();
  sum(ones({1})).wait();  // what frees memory may be behind a launch
  for (int i = 0; i < 1000 && !is_gone; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(is_gone);
}

TEST_P(CellOverTest, has_gradients_and_takes_steps_of_an_optimizer) {
  std::vector<float> memory{1, 2, 3, 4};
  const Array weight = cell_over(adopt(memory.data(), {4}, f32), "weight");
  optim::Sgd sgd(std::vector<Array>{weight}, {.rate = 0.5});
  sgd.step(sum(square(weight)));
  EXPECT_EQ(weight.to_vector<double>(), (std::vector<double>{0, 0, 0, 0}));
}

TEST_P(CellOverTest, wants_the_only_handle_on_an_array_with_its_own_bytes) {
  std::vector<float> memory{1, 2};
  Array kept = adopt(memory.data(), {2}, f32);
  Array other = kept;
  EXPECT_ERROR((cell_over(std::move(kept), "w")), ArgumentError,
               "cell_over: w needs the only handle on an array with its own bytes, got a shared or read-only one, "
               "f32 [2]");
  EXPECT_ERROR((cell_over(other + 1.0, "w")), ArgumentError,
               "cell_over: w needs the only handle on an array with its own bytes, got another one, f32 [2]");
  EXPECT_ERROR((cell_over(Array(), "w")), ArgumentError, "cell_over: w needs an array, got an empty handle");
}

}  // namespace
}  // namespace samebytes::testing
