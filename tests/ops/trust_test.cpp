// The kernels of Lars and Lamb; their values are tested by tests/optim/optimizers_test.cpp.
#include "samebytes/ops/trust.h"

#include <cmath>

#include "samebytes/error.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

class TrustTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(TrustTest);

TEST_P(TrustTest, wrong_segments_and_arrays_are_named) {
  const Array p = cell(zeros({64}), "p"), m = cell(zeros({64}), "m");
  const std::vector<std::int64_t> offsets{0, 32}, sizes{20, 32}, close{0, 16}, odd{0, 40};
  const TrustSegments segments(offsets, sizes, 64);
  EXPECT_EQ(segments.table().shape(), (Shape{2, 4}));
  EXPECT_THROW(TrustSegments(close, sizes, 64), ArgumentError);
  EXPECT_THROW(TrustSegments(odd, sizes, 64), ArgumentError);
  EXPECT_THROW(TrustSegments(offsets, sizes, 48), ArgumentError);
  EXPECT_THROW(lars_update(p, m, zeros({32}), segments, {}), ArgumentError);
  EXPECT_THROW(lars_update(p, zeros({64}), zeros({64}), segments, {}), ArgumentError);
  EXPECT_THROW(lamb_update(p, m, cell(zeros({32}), "v"), zeros({64}), segments, {}), ArgumentError);
}

// For the simulator: each kernel once, with several chunks in a segment.
class SmallShapesTrustTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesTrustTest);

TEST_P(SmallShapesTrustTest, every_kernel_once) {
  const Array p = cell(full({8544}, 0.5), "p"), m = cell(zeros({8544}), "m"), v = cell(zeros({8544}), "v");
  const std::vector<std::int64_t> offsets{0, 8224, 8256}, sizes{8203, 1, 277};
  const TrustSegments segments(offsets, sizes, 8544);
  EXPECT_EQ(segments.table().shape(), (Shape{4, 4}));
  const Array g = full({8544}, 0.25);
  lars_update(p, m, g, segments, {.rate = 0.1, .momentum = 0.9, .trust = 0.01, .eps = 1e-8}).wait();
  lamb_update(p, m, v, g, segments,
              {.rate = 0.1, .beta1 = 0.9, .beta2 = 0.99, .correction1 = 0.1, .correction2 = 0.01, .eps = 1e-6})
      .wait();
  for (const float value : p.to_vector<float>()) ASSERT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace samebytes::testing
