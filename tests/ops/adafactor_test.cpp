// The kernels of Adafactor; their values are tested by tests/optim/adafactor_test.cpp.
#include "ops/adafactor.h"

#include <cmath>

#include "samebytes/error.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

using namespace detail;

class AdafactorOpTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(AdafactorOpTest);

TEST_P(AdafactorOpTest, wrong_layouts_and_arrays_are_named) {
  const std::vector<std::int64_t> crossed{0, 24}, first{0};
  const std::vector<Shape> shapes{{5, 7}, {3}}, matrix{{5, 7}};
  EXPECT_THROW(AdafactorLayout(crossed, shapes, 64), ArgumentError);
  const AdafactorLayout layout(first, matrix, 64);
  EXPECT_EQ(layout.rows(), 5);
  EXPECT_EQ(layout.columns(), 7);
  const Array p = cell(zeros({64}), "p"), r = cell(zeros({5}), "r"), c = cell(zeros({7}), "c");
  EXPECT_THROW(adafactor_update(p, c, r, zeros({64}), layout, {}), ArgumentError);
  EXPECT_THROW(adafactor_update(p, r, c, zeros({63}), layout, {}), ArgumentError);
}

// For the simulator: each kernel once, with several tiles and blocks.
class SmallShapesAdafactorTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesAdafactorTest);

TEST_P(SmallShapesAdafactorTest, every_kernel_once) {
  const std::vector<std::int64_t> offsets{0, 10528};
  const std::vector<Shape> shapes{{35, 300}, {37}};
  const AdafactorLayout layout(offsets, shapes, 10592);
  EXPECT_EQ(layout.tiles().shape()[0], 3);
  const Array p = cell(full({10592}, 0.5), "p"), r = cell(zeros({layout.rows()}), "r"),
              c = cell(zeros({layout.columns()}), "c");
  adafactor_update(p, r, c, full({10592}, 0.25), layout,
                   {.rate = 0.1, .rest = 1.0, .eps = 1e-7, .least_scale = 1e-3, .clip = 1.0, .keep = 1.0})
      .wait();
  for (const float value : p.to_vector<float>()) ASSERT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace samebytes::testing
