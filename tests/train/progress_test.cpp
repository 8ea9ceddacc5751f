#include <gtest/gtest.h>

#include "samebytes/error.h"
#include "samebytes/train.h"

namespace samebytes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Progress, tells_rate_fraction_and_time_left) {
  const Progress::Clock::time_point start{};
  Progress progress(1000, start);
  EXPECT_EQ(progress.rate(), 0.0);
  EXPECT_EQ(progress.seconds_left(), 0.0);
  progress.advance(100, start + seconds(1));
  progress.advance(100, start + seconds(2));
  EXPECT_DOUBLE_EQ(progress.rate(), 100.0);
  EXPECT_DOUBLE_EQ(progress.fraction(), 0.2);
  EXPECT_DOUBLE_EQ(progress.seconds_left(), 8.0);
  EXPECT_DOUBLE_EQ(progress.seconds(), 2.0);
  EXPECT_DOUBLE_EQ(progress.done(), 200.0);
}

TEST(Progress, forgets_how_slow_the_beginning_was) {
  const Progress::Clock::time_point start{};
  Progress progress(10'000, start);
  progress.advance(1, start + seconds(60));
  for (int i = 1; i <= 100; ++i) progress.advance(10, start + seconds(60) + milliseconds(100 * i));
  EXPECT_NEAR(progress.rate(), 100.0, 1e-9);
  EXPECT_NEAR(progress.average_rate(), 1001.0 / 70.0, 1e-9);
}

TEST(Progress, works_without_a_total) {
  const Progress::Clock::time_point start{};
  Progress progress(0, start);
  progress.advance(5, start + seconds(1));
  EXPECT_EQ(progress.fraction(), 0.0);
  EXPECT_EQ(progress.seconds_left(), 0.0);
}

TEST(StepTimes, percentiles_leave_out_the_first_fifth) {
  StepTimes times;
  EXPECT_EQ(times.percentile_ms(50), 0.0);
  StepTimes::Clock::time_point now{};
  times.mark(now);
  for (int i = 0; i < 10; ++i) times.mark(now += milliseconds(i < 2 ? 1000 : i));  // the last eight take 2 .. 9 ms
  EXPECT_EQ(times.count(), 10u);
  EXPECT_DOUBLE_EQ(times.percentile_ms(0), 2.0);
  EXPECT_DOUBLE_EQ(times.percentile_ms(50), 5.0);
  EXPECT_DOUBLE_EQ(times.percentile_ms(95), 9.0);
  EXPECT_DOUBLE_EQ(times.percentile_ms(100), 9.0);
  EXPECT_THROW(times.percentile_ms(101), ArgumentError);
}

TEST(Throughput, is_zero_for_no_time) {
  EXPECT_EQ(throughput(10, 0), 0.0);
  EXPECT_EQ(throughput(10, 4), 2.5);
}

}  // namespace
}  // namespace samebytes
