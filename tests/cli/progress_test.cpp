// The bar, and what it says where nothing has come for a while.
#include "cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace samebytes::testing {
namespace {

using namespace samebytes::cli;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Progress, a_bar_shows_speed_and_rest_only_where_they_are_known) {
  const ProgressState begin{.title = "epoch 1/2", .done = 1, .total = 10};
  EXPECT_EQ(progress_line(begin, 40, false).find("epoch 1/2 "), 0u);
  EXPECT_THAT(progress_line(begin, 100, false), Not(HasSubstr("samples/s")));
  EXPECT_THAT(progress_line(begin, 100, false), Not(HasSubstr("left")));
  EXPECT_EQ(plain_line(begin), "step 1/10  epoch 1/2");
  const ProgressState later{
      .title = "epoch 1/2", .done = 5, .total = 10, .samples_per_second = 2150, .seconds_left = 42, .loss = 0.0431};
  EXPECT_EQ(plain_line(later), "step 5/10  epoch 1/2  loss 0.0431  2 150 samples/s  42.0 s left");
  EXPECT_THAT(progress_line(later, 100, false), HasSubstr(" 50 %  loss 0.0431  2 150 samples/s  42.0 s left"));
}

TEST(Progress, a_bar_that_stands_still_says_what_the_program_does) {
  setenv("TERM", "xterm", 1);
  int ours = -1, theirs = -1;
  winsize size = {};
  size.ws_row = 24;
  size.ws_col = 100;
  ASSERT_EQ(openpty(&ours, &theirs, nullptr, nullptr, &size), 0);
  std::FILE* const terminal = fdopen(theirs, "w");
  std::string seen;
  const auto read_until = [&](const char* text) {
    char buffer[4096];
    while (seen.find(text) == std::string::npos) {
      const ssize_t got = read(ours, buffer, sizeof buffer);
      if (got <= 0) return false;
      seen.append(buffer, static_cast<std::size_t>(got));
    }
    return true;
  };
  {
    samebytes::cli::Progress progress(terminal, false);
    progress.draw({.title = "epoch 1/2", .done = 5, .total = 10});
    EXPECT_TRUE(read_until("epoch 1/2"));
    progress.wait_behind_bar("testing");
    EXPECT_THAT(seen, Not(HasSubstr("testing"))) << "the bar stays for a moment";
    EXPECT_TRUE(read_until("testing"));
    progress.wait_behind_bar("");
    progress.draw({.title = "epoch 2/2", .done = 6, .total = 10});
    EXPECT_TRUE(read_until("epoch 2/2"));
  }
  std::fclose(terminal);
  close(ours);
}

}  // namespace
}  // namespace samebytes::testing
