// Threads that share the host's part of an evaluation: each part is done once, by whoever comes first.
#include "plan/host_crew.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <numeric>
#include <thread>
#include <vector>

namespace samebytes::detail {
namespace {

TEST(HostCrew, does_each_part_once) {
  HostCrew crew(2);
  for (int run = 0; run < 3000; ++run) {
    const int parts = 1 + run * 7 % 40;
    std::vector<int> done(static_cast<std::size_t>(parts), 0);
    crew.run(parts, [&](int part) { ++done[static_cast<std::size_t>(part)]; });
    EXPECT_EQ(done, std::vector<int>(static_cast<std::size_t>(parts), 1)) << "run " << run;
  }
}

TEST(HostCrew, sees_what_was_written_before_and_is_seen_afterwards) {
  HostCrew crew(1);
  std::vector<int> values(64, 0);
  for (int run = 0; run < 2000; ++run) crew.run(64, [&](int part) { values[static_cast<std::size_t>(part)] += part; });
  for (int part = 0; part < 64; ++part) EXPECT_EQ(values[static_cast<std::size_t>(part)], 2000 * part);
}

TEST(HostCrew, helps_again_after_a_pause) {
  HostCrew crew(1);
  std::atomic<int> done = 0;
  for (int round = 0; round < 4; ++round) {
    for (int run = 0; run < 50; ++run) crew.run(8, [&](int) { ++done; });
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // its threads sleep now
  }
  EXPECT_EQ(done, 4 * 50 * 8);
}

TEST(HostCrew, a_helper_takes_a_part_of_a_long_run) {
  HostCrew crew(1);
  const std::thread::id own = std::this_thread::get_id();
  std::atomic<int> by_others = 0;
  for (int run = 0; run < 200 && by_others == 0; ++run)
    crew.run(8, [&](int) {
      if (std::this_thread::get_id() != own) ++by_others;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    });
  EXPECT_GT(by_others, 0);
}

TEST(HostCrew, starts_no_thread_for_single_runs) {
  HostCrew crew(3);
  const std::thread::id own = std::this_thread::get_id();
  for (int run = 0; run < 3; ++run) {
    crew.run(16, [&](int) { EXPECT_EQ(std::this_thread::get_id(), own); });
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace
}  // namespace samebytes::detail
