// Plots: every point is there with its value, on straight and logarithmic axes; what cannot be drawn is left out.
#include "samebytes/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "support/count_words.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Plot, draws_each_point_and_names_axes_and_series) {
  const std::string svg =
      plot_svg({.title = "a < b",
                .x_label = "batch",
                .is_log = true,
                .panels = {{.y_label = "samples/s", .series = {{"speed", {{1, 10}, {8, 70}, {64, 200}}}}},
                           {.y_label = "steps",
                            .series = {{"one", {{1, 900}, {8, NAN}}}, {"two", {{0, 5}, {64, 3}}}},
                            .is_log = true}}});
  EXPECT_EQ(count_words(svg, "<circle"), 5) << "NaN, and 0 on a logarithmic axis, have no place";
  EXPECT_EQ(count_words(svg, "<polyline"), 3);
  for (const char* text : {"a &lt; b", "samples/s", "steps", "batch", "speed: 70 at 8", ">64<"})
    EXPECT_THAT(svg, HasSubstr(text));
  EXPECT_THAT(svg, ::testing::StartsWith("<svg"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(Plot, one_point_and_none_have_finite_axes) {
  for (const bool is_log : {false, true}) {
    const std::string svg = plot_svg(
        {.is_log = is_log, .panels = {{.series = {{"one", {{3, 0.5}}}}, .is_log = is_log}, {.y_label = "none"}}});
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
  EXPECT_ERROR(plot_svg({}), ArgumentError, "plot_svg: needs at least one panel");
}

}  // namespace
}  // namespace samebytes::testing
