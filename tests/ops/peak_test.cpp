#include "samebytes/peak.h"

#include <gtest/gtest.h>

#include "support/devices.h"
#include "support/process.h"

namespace samebytes::testing {
namespace {

class PeakTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(PeakTest);

TEST_P(PeakTest, both_measures_are_positive_and_no_machine_of_today_is_faster_than_the_bound) {
  const DevicePeak peak = measure_peak();
  RecordProperty("gflops", std::to_string(peak.gflops));
  RecordProperty("gigabytes_per_second", std::to_string(peak.gigabytes_per_second));
  EXPECT_GT(peak.gflops, 0);
  EXPECT_GT(peak.gigabytes_per_second, 0);
  // A core does at most 64 multiply-adds a cycle at 6 GHz: more would mean that the compiler removed the work.
  if (engine().device().type == "cpu") {
    EXPECT_LT(peak.gflops, 2 * 64 * 6.0 * engine().device().cores);
  }
}

}  // namespace
}  // namespace samebytes::testing
