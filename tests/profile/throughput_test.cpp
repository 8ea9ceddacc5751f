// The page of a comparison of devices: every row, shares of measured peaks, and blanks for what was not measured.
#include "samebytes/throughput.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/count_words.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

DeviceInfo device(const char* id, const char* name) {
  DeviceInfo info;
  info.id = id;
  info.name = name;
  return info;
}

Throughput two_devices() {
  Throughput t{.command = "samebytes bench --device all", .date = "2026-11-22"};
  t.devices.push_back({.info = device("cpu:0", "a <fast> one"), .peak = {200, 40}});
  t.devices.push_back({.info = device("gpu:0", "unknown"), .peak = {}});
  t.rows.push_back({.device = 0,
                    .workload = "mlp",
                    .mode = "train",
                    .batch = 64,
                    .samples_per_second = 64000,
                    .largest_batch = 123456,
                    .flops_per_step = 1e8,
                    .bytes_per_step = 2e7,
                    .joules_per_sample = 0.0125});
  t.rows.push_back({.device = 1, .workload = "mlp", .mode = "train", .batch = 64, .samples_per_second = 3.5});
  return t;
}

TEST(Throughput, speeds_follow_from_samples_and_counts_of_a_step) {
  const ThroughputRow row = two_devices().rows[0];
  EXPECT_DOUBLE_EQ(row.seconds_per_step(), 1e-3);
  EXPECT_DOUBLE_EQ(row.gflops(), 100);
  EXPECT_DOUBLE_EQ(row.gigabytes_per_second(), 20);
  EXPECT_EQ(ThroughputRow{}.gflops(), 0);
}

TEST(Throughput, the_page_has_every_row_and_blanks) {
  const std::string html = throughput_html(two_devices(), "a title");
  for (const char* text : {"a title", "a &lt;fast&gt; one", "samebytes bench --device all", "64&#8239;000",
                           "123&#8239;456", "<td>50 %</td>", "0.0125", "3.5 on gpu:0", "Roofline of cpu:0"})
    EXPECT_THAT(html, HasSubstr(text));
  EXPECT_EQ(count_words(html, "mlp train</td>"), 2);
  EXPECT_THAT(html, Not(HasSubstr("Roofline of gpu:0"))) << "its peak is not known";
  EXPECT_THAT(html, HasSubstr("<td></td>"));
  for (const char* text : {"nan", "inf<", "href", "<script"}) EXPECT_THAT(html, Not(HasSubstr(text)));
}

TEST(Throughput, a_row_needs_its_device) {
  Throughput t = two_devices();
  t.rows[1].device = 2;
  EXPECT_ERROR(throughput_html(t, ""), ArgumentError, "throughput_html: mlp train is of device 2, there are 2");
  EXPECT_THAT(throughput_html({}, "empty"), HasSubstr("empty"));
}

}  // namespace
}  // namespace samebytes::testing
