// --memory-snapshot and samebytes memory: the file is written, drawn as text, picture and JSON, and refused where it is
// none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

TEST(Memory, a_snapshot_of_a_training_is_drawn) {
  const TemporaryFolder folder;
  const std::string file = folder / "memory.json", svg = folder / "memory.svg";
  const auto trained = run_command({"train", "digits", "--steps", "5", "--memory-snapshot", file});
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out + trained.err, HasSubstr("samebytes memory " + file + " draws it"));

  const auto text = run_command({"memory", file, "--svg", svg});
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("timeline of the step"));
  EXPECT_THAT(text.out, HasSubstr("> peak: launch "));
  EXPECT_THAT(text.out, HasSubstr("AdamW moment1 0"));
  EXPECT_THAT(text.out, HasSubstr("Linear"));
  EXPECT_EQ(get(svg).rfind("<svg ", 0), 0u);

  const auto json = run_command({"memory", file, "--json"}).json();
  ASSERT_TRUE(json.is_object());
  EXPECT_GT(json["live"]["parameters"], 100000);
  EXPECT_GE(json["live"]["optimizer"], 2 * json["live"]["parameters"].get<std::int64_t>() - 200000);
  EXPECT_FALSE(json["step_peak"]["op"].get<std::string>().empty());
}

TEST(Memory, the_difference_of_two_snapshots_is_told) {
  const TemporaryFolder folder;
  const std::string small = folder / "small.json", large = folder / "large.json";
  for (const auto& [file, batch] : {std::pair{small, "32"}, {large, "256"}}) {
    const auto trained = run_command({"train", "digits", "--steps", "3", "--batch", batch, "--memory-snapshot", file});
    ASSERT_EQ(trained.status, 0) << trained.err;
  }
  const auto text = run_command({"memory", small, "--diff", large});
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("arrays in use"));
  EXPECT_THAT(text.out, HasSubstr("arena"));
  const auto json = run_command({"memory", small, "--diff", large, "--json"}).json();
  ASSERT_TRUE(json.is_object());
  EXPECT_GT(json["live"]["activations"], 0);
  EXPECT_EQ(json["live"]["parameters"], 0);
  EXPECT_EQ(json["live"]["optimizer"], 0);
  const auto same = run_command({"memory", small, "--diff", small});
  EXPECT_THAT(same.out, HasSubstr("the same arrays are in use"));
  const auto refused = run_command({"memory", small, "--diff", large, "--svg", folder / "x.svg"});
  EXPECT_EQ(refused.status, 2);
}

TEST(Memory, what_is_no_snapshot_is_named) {
  const TemporaryFolder folder;
  const std::string file = folder / "other.json";
  put(file, "{\"format\": \"pickle\"}");
  auto result = run_command({"memory", file});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("format: expected \"samebytes-memory\", found \"pickle\""));
  result = run_command({"memory", folder / "missing.json"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("missing.json"));
  result = run_command({"bench", "digits", "--memory-snapshot", file});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("--memory-snapshot needs one workload"));
}

}  // namespace
}  // namespace samebytes::testing
