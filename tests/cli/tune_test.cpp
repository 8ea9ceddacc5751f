// samebytes tune: end to end in a store of its own, what it shows and removes, and the hash in the log of a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "cli/command.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

TEST(Tune, help_explains_every_option_on_lines_that_fit) {
  const auto result = run_command({"tune", "--help"});
  EXPECT_EQ(result.status, 0);
  for (const char* option : {"--device", "--rapid", "--seconds", "--only", "--dry-run", "--show", "--reset", "--json",
                             "--quiet", "SAMEBYTES_TUNING"})
    EXPECT_THAT(result.out, HasSubstr(option));
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
}

TEST(Tune, wrong_wishes_end_with_2) {
  EXPECT_EQ(run_command({"tune", "--only", "softmax"}).status, 2);
  EXPECT_EQ(run_command({"tune", "--seconds", "0"}).status, 2);
  EXPECT_EQ(run_command({"tune", "--show", "--rapid"}).status, 2);
  EXPECT_THAT(run_command({"tune", "--seconds", "1"}, {{"SAMEBYTES_TUNING", "off"}}).err,
              HasSubstr("there is no place for a store"));
}

TEST(Tune, rapid_writes_a_store_that_runs_read_and_reset_removes) {
  const TemporaryFolder folder;
  const std::map<std::string, std::string> place = {{"SAMEBYTES_TUNING", folder / "new"}};
  const auto tuned = run_command({"tune", "--rapid", "--seconds", "3", "--only", "gemm", "--json", "--quiet"}, place);
  ASSERT_EQ(tuned.status, 0) << tuned.err;
  const auto report = tuned.json();
  ASSERT_TRUE(report.is_object()) << tuned.out;
  EXPECT_TRUE(report["written"].get<bool>());
  EXPECT_EQ(report["wrong"], 0) << report.dump();
  EXPECT_EQ(report["not_built"], 0) << report.dump();
  ASSERT_FALSE(report["problems"].empty());
  for (const auto& row : report["problems"]) {
    EXPECT_GT(row["built_in_ms"], 0.0);
    EXPECT_GT(row["best_ms"], 0.0);
  }
  const std::string file = report["file"];
  EXPECT_THAT(get(file), HasSubstr("\"measured\""));

  // Edited by hand: the run says so.
  std::string text = get(file);
  if (text.find("\"launch\"") == std::string::npos) {
    const std::size_t at = text.find("\"date\"");
    ASSERT_NE(at, std::string::npos);
    text.insert(at, "\"launch\": {\"gemm\": {\"thin\": {\"last_groups\": 4}}},\n  ");
    put(file, text);
  }
  const auto shown = run_command({"tune", "--show"}, place);
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr(file));
  EXPECT_THAT(shown.out, HasSubstr("launch.gemm.thin.last_groups"));
  const std::string log = folder / "log.jsonl";
  const auto trained = run_command({"train", "digits", "--steps", "2", "--log", log, "--json", "--quiet"}, place);
  ASSERT_EQ(trained.status, 0) << trained.err;
  const std::string hash = trained.json()["tuning"];
  EXPECT_EQ(hash.size(), 16u);
  std::ifstream lines(log);
  std::string first;
  std::getline(lines, first);
  const auto start = nlohmann::json::parse(first);
  EXPECT_EQ(start["event"], "start");
  EXPECT_EQ(start["tuning"], hash);

  // Damaged: one clear line, and reset still works.
  put(file, "{\"format\": 7}");
  const auto damaged = run_command({"train", "digits", "--steps", "2"}, place);
  EXPECT_EQ(damaged.status, 1);
  EXPECT_THAT(damaged.err, HasSubstr("tuning: " + file + ": format: expected 1, found 7; mend the file"));
  EXPECT_EQ(run_command({"tune", "--reset"}, place).out, file + ": removed\n");
  EXPECT_EQ(run_command({"tune", "--reset"}, place).out, file + ": there was none\n");
  EXPECT_THAT(run_command({"tune", "--show"}, place).out, HasSubstr("(not there)"));
}

TEST(Tune, a_dry_run_writes_nothing_and_ctrl_c_ends_it) {
  const TemporaryFolder folder;
  CommandRun run;
  run.arguments = {"tune", "--seconds", "600", "--rapid", "--only", "gemm", "--dry-run"};
  run.environment = {{"SAMEBYTES_TUNING", folder.string()}};
  run.signal_after = "Ctrl-C";
  const auto result = run_command(run);
  EXPECT_EQ(result.status, 130) << result.err;
  EXPECT_THAT(result.out, HasSubstr("nothing was written"));
  EXPECT_EQ(folder.count(), 0u);
}

}  // namespace
}  // namespace samebytes::testing
