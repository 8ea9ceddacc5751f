// Threads that the system does not start. Fewer do what threads were wanted for, or an error says for what; nobody
// waits for a thread that is not there. Each test is a process in which some of the threads are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "plan/host_crew.h"
#include "runtime/reaper.h"
#include "samebytes/data.h"
#include "samebytes/samebytes.h"
#include "support/errors.h"
#include "support/process.h"
#include "train/parallel/meeting.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class RefusedThreads : public ::testing::Test {
 protected:
  void SetUp() override {
    if (is_sanitized()) GTEST_SKIP() << "LD_PRELOAD does not go with sanitizers";
  }
  static Outcome run(const std::string& child, const std::string& faults) {
    return run_child("RefusedThreadsChild.DISABLED_" + child,
                     {{"LD_PRELOAD", built_program("libfaults_preload.so")}, {"SAMEBYTES_FAULTS", faults}});
  }
};

TEST_F(RefusedThreads, who_drains_does_the_work_of_a_reaper_without_one) {
  const Outcome outcome = run("reaper", "error pthread_create 1");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

TEST(RefusedThreadsChild, DISABLED_reaper) {
  int done = 0;
  detail::Reaper reaper;
  reaper.add(nullptr, [&] { ++done; });
  EXPECT_EQ(done, 0);  // never blocks, so nobody does it here
  reaper.drain();
  EXPECT_EQ(done, 1);
  reaper.add(nullptr, [&] { ++done; });  // the system starts one again
  reaper.drain();
  EXPECT_EQ(done, 2);
}

TEST_F(RefusedThreads, the_destructor_does_the_work_of_a_reaper_without_one) {
  const Outcome outcome = run("reaper_that_ends", "error pthread_create 1;error pthread_create 2");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

TEST(RefusedThreadsChild, DISABLED_reaper_that_ends) {
  int done = 0;
  {
    detail::Reaper reaper;
    reaper.add(nullptr, [&] { ++done; });
    reaper.add(nullptr, [&] { ++done; });
  }
  EXPECT_EQ(done, 2);
}

TEST_F(RefusedThreads, a_crew_with_fewer_helpers_or_none_does_every_part) {
  for (const char* faults : {"error pthread_create 1", "error pthread_create 2"}) {
    const Outcome outcome = run("crew", faults);
    EXPECT_EQ(outcome.status, 0) << faults << outcome.output;
  }
}

TEST(RefusedThreadsChild, DISABLED_crew) {
  detail::HostCrew crew(3);
  std::vector<int> times(8);
  for (int round = 0; round < 200; ++round)
    crew.run(static_cast<int>(times.size()), [&](int part) { ++times[static_cast<std::size_t>(part)]; });
  EXPECT_EQ(times, std::vector<int>(8, 200));
}

TEST_F(RefusedThreads, of_parts_that_meet_none_begins_if_one_cannot) {
  const Outcome outcome = run("meeting", "error pthread_create 2");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

TEST(RefusedThreadsChild, DISABLED_meeting) {
  train::parallel::Meeting meeting;
  std::vector<std::size_t> begun;
  std::vector<std::function<void()>> parts;
  for (std::size_t i = 0; i < 3; ++i) parts.emplace_back([&, i] { begun.push_back(i); });
  EXPECT_THAT(message_of<Error>([&] { meeting.run(parts); }),
              StartsWith("data parallel: the system starts no thread: "));
  EXPECT_EQ(begun, std::vector<std::size_t>());
  meeting.run(parts);
  EXPECT_EQ(begun, (std::vector<std::size_t>{0, 1, 2}));
}

TEST_F(RefusedThreads, a_loader_goes_on_with_fewer_workers_and_says_so) {
  const Outcome outcome = run("loader", "error pthread_create 3");  // the second worker
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

TEST(RefusedThreadsChild, DISABLED_loader) {
  const auto set = data::preload(data::generate(64, {{"x", Shape{}}},
                                                [](std::int64_t index, std::span<const data::Field> to) {
                                                  to[0].as<float>()[0] = static_cast<float>(index);
                                                }),
                                 2);
  std::string said;
  set_log_sink([&](std::string_view, std::string_view message) { said += message; });
  Engine engine;
  data::Loader loader(engine, set, {.batch = 16, .workers = 3});
  float sum = 0;
  for (const data::Batch& batch : loader)
    for (const float value : batch[0].to_vector<float>()) sum += value;
  set_log_sink({});
  EXPECT_EQ(sum, 63 * 64 / 2);
  EXPECT_THAT(said, HasSubstr("1 of 3 workers load"));
}

}  // namespace
}  // namespace samebytes::testing
