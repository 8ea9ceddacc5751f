// Counts, durations, sizes and tables as people read them.
#include "samebytes/figures.h"

#include <gtest/gtest.h>

#include <cmath>

namespace samebytes {
namespace {

TEST(Figures, counts_have_a_blank_between_thousands_and_one_is_singular) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(9.871), "9.87");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(12345), "12 345");
  EXPECT_EQ(count_text(-1234567), "-1 234 567");
  EXPECT_EQ(count_text(NAN), "-");
  EXPECT_EQ(counted_text(1, "step"), "1 step");
  EXPECT_EQ(counted_text(0, "step"), "0 steps");
  EXPECT_EQ(counted_text(1200, "step"), "1 200 steps");
  EXPECT_EQ(counted_text(2, "launch"), "2 launches");
  EXPECT_EQ(bytes_text(1), "1 byte");
  EXPECT_EQ(bytes_text(2048), "2.05 kB");
}

TEST(Figures, durations_are_seconds_until_a_minute) {
  EXPECT_EQ(duration_text(0.416), "0.42 s");
  EXPECT_EQ(duration_text(12.34), "12.3 s");
  EXPECT_EQ(duration_text(185), "3:05");
  EXPECT_EQ(duration_text(3723), "1:02:03");
  EXPECT_EQ(duration_text(INFINITY), "-");
}

TEST(Figures, columns_of_a_table_are_as_wide_as_their_widest_cell) {
  TextTable table("lrl", 2);
  table.add({"name", "size", "shape"});
  table.add({"a", "1 000", ""});
  table.add({"longer name", "7", "[2, 3]"});
  table.add({"only"});
  EXPECT_EQ(table.to_text(),
            "  name          size  shape\n"
            "  a            1 000\n"
            "  longer name      7  [2, 3]\n"
            "  only\n");
}

}  // namespace
}  // namespace samebytes
