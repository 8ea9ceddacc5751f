#include "samebytes/train/run_meter.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace samebytes::train {
namespace {

TEST(StepClock, looks_at_the_last_80_percent_of_the_steps) {
  StepClock clock;
  clock.resume();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  clock.tick();  // the slow first step
  for (int i = 0; i < 9; ++i) clock.tick();
  EXPECT_EQ(clock.steps(), 10);
  EXPECT_GE(clock.seconds(), 0.2);
  EXPECT_LT(clock.milliseconds(95), 200);
}

TEST(StepClock, leaves_out_pauses) {
  StepClock clock;
  clock.resume();
  clock.tick();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  clock.resume();
  clock.tick();
  EXPECT_LT(clock.seconds(), 0.2);
}

}  // namespace
}  // namespace samebytes::train
