// The kernels of Lars and Lamb; their values are tested by tests/optim/optimizers_test.cpp.
#include "ops/trust.h"

#include <cmath>

#include "samebytes/error.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

using namespace detail;

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
  EXPECT_THROW(TrustSegments(offsets, sizes, 64, 16, 64), ArgumentError);  // in the midst of the first one
  EXPECT_THROW(TrustSegments(offsets, sizes, 64, 8, 64), ArgumentError);
  EXPECT_THROW(lars_update(p, m, zeros({64}), TrustSegments(offsets, sizes, 64, 32, 64), {}), ArgumentError);
  EXPECT_THROW(lars_update(p, m, zeros({32}), segments, {}), ArgumentError);
  EXPECT_THROW(lars_update(p, zeros({64}), zeros({64}), segments, {}), ArgumentError);
  EXPECT_THROW(lamb_update(p, m, cell(zeros({32}), "v"), zeros({64}), segments, {}), ArgumentError);
}

TEST_P(TrustTest, a_share_is_updated_as_in_the_whole_and_the_rest_stays) {
  constexpr std::int64_t kSize = 8544, kBegin = 8224, kEnd = 8256;
  const std::vector<std::int64_t> offsets{0, kBegin, kEnd}, sizes{8203, 29, 277};
  const TrustSegments all(offsets, sizes, kSize), share(offsets, sizes, kSize, kBegin, kEnd);
  const Array g = uniform({kSize}, -1, 1, f32, {1, 1}), first = uniform({kSize}, -1, 1, f32, {1, 2});
  eval({g, first});
  const auto updated = [&](const TrustSegments& segments, bool is_lamb) {
    const std::int64_t size = segments.end() - segments.begin();
    const Array p = cell(first * 1.0, "p"), m = cell(zeros({size}), "m"), v = cell(zeros({size}), "v");
    if (is_lamb)
      lamb_update(p, m, v, g, segments,
                  {.rate = 0.1, .beta1 = 0.9, .beta2 = 0.99, .correction1 = 0.1, .correction2 = 0.01, .eps = 1e-6})
          .wait();
    else
      lars_update(p, m, g, segments, {.rate = 0.1, .momentum = 0.9, .trust = 0.01, .eps = 1e-8}).wait();
    std::vector<float> values = p.to_vector<float>();
    const std::vector<float> moments = m.to_vector<float>();
    const auto begin = moments.begin() + (kBegin - segments.begin());
    values.insert(values.end(), begin, begin + (kEnd - kBegin));
    return values;
  };
  const std::vector<float> before = first.to_vector<float>();
  for (const bool is_lamb : {false, true}) {
    const std::vector<float> whole = updated(all, is_lamb), part = updated(share, is_lamb);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const bool is_of_share = static_cast<std::int64_t>(i) >= kSize ||
                               (static_cast<std::int64_t>(i) >= kBegin && static_cast<std::int64_t>(i) < kEnd);
      ASSERT_EQ(part[i], is_of_share ? whole[i] : before[i]) << i;
    }
    EXPECT_NE(part[kBegin], before[kBegin]);
  }
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
