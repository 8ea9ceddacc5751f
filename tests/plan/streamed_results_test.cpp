// Results that generated kernels store past the caches are whole, also where the last one is no vector.
#include <gtest/gtest.h>

#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"

namespace samebytes::testing {
namespace {

class StreamedResults : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(StreamedResults);

TEST_P(StreamedResults, are_whole) {
  constexpr std::int64_t kElements = (std::int64_t{8} << 20) + 7;  // a little more than 32 MiB
  const Array x = uniform({kElements}, -1, 1).wait();
  const Array y = x + 1.0;
  const std::vector<float> before = x.to_vector<float>(), after = y.to_vector<float>();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < before.size(); ++i) wrong += after[i] != before[i] + 1.0F;
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace samebytes::testing
