// A loader that is told in the middle of a pass to hold fewer batches.
#include <gtest/gtest.h>

#include <vector>

#include "samebytes/data/loader.h"
#include "samebytes/error.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::data {
namespace {

class LoaderLimitTest : public testing::OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(LoaderLimitTest);

TEST_P(LoaderLimitTest, slots_go_in_the_middle_of_a_pass_and_the_batches_stay_the_same) {
  const DatasetPtr set = generate(60, {{"x", Shape{}}}, [](std::int64_t index, std::span<const Field> dst) {
    dst[0].as<float>()[0] = static_cast<float>(index);
  });
  for (const int workers : {0, 1, 3}) {
    Loader loader(engine(), set, {.batch = 5, .slots = 4, .workers = workers});
    for (int pass = 0; pass < 2; ++pass) {
      std::vector<float> seen;
      for (const Batch& batch : loader) {
        for (const float x : batch[0].to_vector<float>()) seen.push_back(x);
        if (batch.step() == 3 && pass == 0) loader.limit_slots(1);
      }
      ASSERT_EQ(seen.size(), 60u);
      for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], static_cast<float>(i));
      EXPECT_EQ(loader.stats().slots, 1) << workers << " workers, pass " << pass;
    }
  }
}

TEST_P(LoaderLimitTest, one_batch_is_the_least) {
  const DatasetPtr set = generate(4, {{"x", Shape{}}}, [](std::int64_t, std::span<const Field>) {});
  Loader loader(engine(), set, {.batch = 2});
  EXPECT_ERROR(loader.limit_slots(0), ArgumentError, "loader: limit_slots: expected 1 or more, got 0");
}

}  // namespace
}  // namespace samebytes::data
