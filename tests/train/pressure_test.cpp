#include "samebytes/pressure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

class PressureTest : public OnDevice {
 protected:
  PressureTest() {
    set_log_sink([this](std::string_view level, std::string_view text) {
      if (level == "warning") warnings_.emplace_back(text);
    });
  }
  ~PressureTest() override { set_log_sink(nullptr); }

  // Used bytes: those that the test sets, and the engine's cache.
  PressureGuard guard(std::size_t limit = 0) {
    return PressureGuard(engine(), {.limit = limit, .seconds = 0, .figures = [this] {
                                      return MemoryFigures{used_ + engine().memory().cached_bytes, 1'000'000'000};
                                    }});
  }
  void fill_cache() {
    const Array a = empty({1 << 20});
    (void)a;
  }

  std::size_t used_ = 0;
  std::vector<std::string> warnings_;
};
SAMEBYTES_ON_EVERY_DEVICE(PressureTest);

TEST_P(PressureTest, below_85_per_cent_nothing_happens) {
  fill_cache();
  const std::size_t cached = engine().memory().cached_bytes;
  PressureGuard guard = this->guard();
  used_ = 800'000'000;
  EXPECT_EQ(guard.look(), Pressure::low);
  EXPECT_EQ(engine().memory().cached_bytes, cached);
  EXPECT_EQ(guard.trimmed_bytes(), 0u);
}

TEST_P(PressureTest, the_cache_goes_first_and_then_comes_one_warning) {
  engine().clear_cache();
  fill_cache();
  const std::size_t cached = engine().memory().cached_bytes;
  if (cached == 0) GTEST_SKIP() << "an exact allocator keeps nothing";
  PressureGuard guard = this->guard();
  used_ = 849'000'000;
  EXPECT_EQ(guard.look(), Pressure::trimmed);
  EXPECT_EQ(engine().memory().cached_bytes, 0u);
  EXPECT_EQ(guard.trimmed_bytes(), cached);
  EXPECT_TRUE(warnings_.empty());
  used_ = 900'000'000;
  EXPECT_EQ(guard.look(), Pressure::high);
  EXPECT_EQ(guard.look(), Pressure::high);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_THAT(warnings_[0], HasSubstr("uses 0.9 GB of the 1 GB that it can have"));
}

TEST_P(PressureTest, near_the_end_it_stops_with_figures_and_ways_out) {
  PressureGuard guard = this->guard();
  used_ = 960'000'000;
  try {
    guard.look();
    FAIL() << "nothing was thrown";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), HasSubstr("pressure guard: the process uses 0.96 GB of the 1 GB"));
    EXPECT_THAT(error.what(), HasSubstr("before the system swaps or kills the process; ways out: (1) a smaller batch"));
    EXPECT_EQ(error.need(), 960'000'000u);
    EXPECT_EQ(error.budget(), 1'000'000'000u);
  }
  used_ = 100'000'000;  // the engine is usable
  EXPECT_EQ(guard.look(), Pressure::low);
}

TEST_P(PressureTest, what_a_run_can_do_without_goes_in_order_and_the_run_goes_on) {
  std::vector<std::string> told;
  int slots = 2, piece = 8;
  used_ = 700'000'000;
  const auto slots_go = [&]() -> std::optional<std::string> {
    if (slots == 1) return {};
    return "slots " + std::to_string(--slots);
  };
  const auto pieces_go = [&]() -> std::optional<std::string> {
    if (piece == 1) return {};
    return "pieces of " + std::to_string(piece /= 2);
  };
  PressureGuard guard(engine(), {.seconds = 0,
                                 .figures =
                                     [&] {
                                       return MemoryFigures{used_, 1'000'000'000};
                                     },
                                 .reliefs = {{slots_go}, {pieces_go}},
                                 .tell = [&](const PressureAction& action) { told.push_back(action.text); }});
  EXPECT_EQ(guard.look(), Pressure::low);
  EXPECT_TRUE(told.empty());
  used_ = 870'000'000;
  engine().clear_cache();
  EXPECT_EQ(guard.look(), Pressure::relieved);
  used_ = 860'000'000;  // not enough
  EXPECT_EQ(guard.look(), Pressure::relieved);
  used_ = 700'000'000;
  EXPECT_EQ(guard.look(), Pressure::low);
  EXPECT_EQ(told, (std::vector<std::string>{"slots 1", "pieces of 4"}));
  used_ = 970'000'000;  // beyond 95 %, and there is still something to give up
  EXPECT_EQ(guard.look(), Pressure::relieved);
  EXPECT_EQ(guard.look(), Pressure::relieved);
  EXPECT_EQ(piece, 1);
  EXPECT_THROW(guard.look(), OutOfMemory);
  used_ = 900'000'000;
  EXPECT_EQ(guard.look(), Pressure::high);
  EXPECT_EQ(told.size(), 4u);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_THAT(warnings_[0], HasSubstr("and nothing is left to give up"));
}

TEST_P(PressureTest, the_memory_of_temporaries_comes_back) {
  if (is_simulated()) GTEST_SKIP() << "megabytes are many for an interpreter";
  const EngineScope scope(engine());
  const Array x = uniform({1 << 20}, -1, 1, f32, {1, 2});
  x.wait();
  const auto run = [&] {
    Array y = cumsum(x, 0);  // without a handle of its own when it is evaluated
    y = cumsum(y * 2.0, 0);
    y = sum(y);
    return y.value();
  };
  const double value = run();
  const std::size_t bytes = release_temporaries(engine());
  if (bytes == 0) GTEST_SKIP() << "an exact allocator has no arena";
  EXPECT_GE(bytes, std::size_t{4} << 20);
  engine().wait();
  EXPECT_EQ(release_temporaries(engine()), 0u);
  EXPECT_EQ(run(), value);
}

TEST_P(PressureTest, a_limit_of_its_own_counts_where_it_is_lower) {
  PressureGuard guard = this->guard(100'000'000);
  used_ = 84'000'000;
  EXPECT_NE(guard.look(), Pressure::high);
  used_ = 90'000'000;
  EXPECT_EQ(guard.look(), Pressure::high);
}

TEST_P(PressureTest, the_shares_are_checked) {
  EXPECT_ERROR(PressureGuard(engine(), {.trim_share = 0.9, .stop_share = 0.8}), ArgumentError,
               "PressureGuard: expected 0 < trim_share <= stop_share, got 0.900000 and 0.800000");
}

TEST(Pressure, the_system_says_what_this_process_uses) {
  const MemoryFigures figures = process_memory();
  EXPECT_GT(figures.used, std::size_t{1} << 20);
  EXPECT_GE(figures.limit, figures.used);
}

}  // namespace
}  // namespace samebytes::testing
