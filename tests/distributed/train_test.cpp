// samebytes train under mpirun: the steps of one process, one log, one checkpoint for any number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "samebytes/distributed.h"
#include "samebytes/io.h"
#include "support/files.h"
#include "support/mpirun.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TrainInRanksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!distributed::is_available()) GTEST_SKIP() << "needs_mpi: this build has none";
    // No batch norm, which sees its own rank's samples, and no dropout.
    std::string text;
    for (std::uint32_t i = 0, state = 1; i < 1000; ++i, state = state * 1664525 + 1013904223)
      text += "etaoin shr"[(state >> 24) % 10];
    put(folder_ / "text", text);
  }
  Outcome train(int ranks, std::vector<std::string> options) {
    std::vector<std::string> words{built_program("samebytes"),
                                   "train",
                                   "gpt",
                                   "--data",
                                   folder_ / "text",
                                   "--context",
                                   "16",
                                   "--optimizer",
                                   optimizer_,
                                   "--rate",
                                   rate_,
                                   "--schedule",
                                   "constant",
                                   "--batch",
                                   batch_};
    words.insert(words.end(), options.begin(), options.end());
    return run_ranks(ranks, words);
  }
  // The parameters in a file of --save.
  static std::vector<float> parameters(const std::string& path) {
    std::vector<float> all;
    const io::TensorFile file(path);
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
      std::vector<float> one(file.tensors()[i].bytes() / sizeof(float));
      file.read(i, std::as_writable_bytes(std::span(one)));
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  static double difference(const std::vector<float>& a, const std::vector<float>& b) {
    if (a.size() != b.size() || a.empty()) return HUGE_VAL;
    double largest = 0, most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(a[i])));
      most = std::max(most, std::abs(static_cast<double>(a[i]) - b[i]));
    }
    return most / largest;
  }
  // Of the steps in a log.
  static std::vector<double> losses(const std::string& path) {
    std::vector<double> all;
    std::istringstream lines(get(path));
    for (std::string line; std::getline(lines, line);)
      if (const auto json = nlohmann::json::parse(line); json["event"] == "step") all.push_back(json["loss"]);
    return all;
  }
  // The first line of an event in a log.
  static nlohmann::json line_of(const std::string& path, const std::string& event) {
    std::istringstream lines(get(path));
    for (std::string line; std::getline(lines, line);)
      if (auto json = nlohmann::json::parse(line); json["event"] == event) return json;
    return {};
  }
  static double state_bytes(const Outcome& outcome) {
    const std::string word = "\"state_bytes\":";
    const std::size_t at = outcome.output.find(word);
    return at == std::string::npos ? NAN : std::stod(outcome.output.substr(at + word.size()));
  }
  TemporaryFolder folder_;
  std::string optimizer_ = "sgd", rate_ = "0.01", batch_ = "50";
};

TEST_F(TrainInRanksTest, ranks_take_the_steps_of_one_process_and_rank_0_alone_writes) {
  ASSERT_EQ(train(1, {"--steps", "8", "--save", folder_ / "one"}).status, 0);
  const Outcome two = train(2, {"--steps", "8", "--save", folder_ / "two", "--log", folder_ / "log", "--json"});
  ASSERT_EQ(two.status, 0) << two.output;
  EXPECT_LT(difference(parameters(folder_ / "one"), parameters(folder_ / "two")), 1e-6);
  const std::string log = get(folder_ / "log");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1 + 8 + 1 + 1) << log;  // start, steps, epoch, summary
  EXPECT_THAT(two.output, HasSubstr("\"samples\":400,"));
  EXPECT_THAT(two.output, HasSubstr("\"ranks\":{\"size\":2,\"buckets\":5,"));
  EXPECT_THAT(two.output, HasSubstr("\"bytes_copied_per_step\":0.0,"));
}

TEST_F(TrainInRanksTest, any_number_of_ranks_goes_on_from_one_checkpoint) {
  const std::string kept = folder_ / "kept";
  ASSERT_EQ(train(1, {"--steps", "22", "--save", folder_ / "whole"}).status, 0);  // into the second epoch
  ASSERT_EQ(train(2, {"--steps", "20", "--checkpoint", kept, "--checkpoint-every", "10"}).status, 0);
  const Outcome three = train(
      3, {"--steps", "22", "--checkpoint", kept, "--resume", "auto", "--save", folder_ / "three", "--accumulate", "1"});
  ASSERT_EQ(three.status, 0) << three.output;
  EXPECT_THAT(three.output, HasSubstr("goes on after step 20"));
  EXPECT_LT(difference(parameters(folder_ / "whole"), parameters(folder_ / "three")), 1e-5);
}

TEST_F(TrainInRanksTest, the_loss_in_the_log_is_that_of_the_whole_batch) {
  ASSERT_EQ(train(1, {"--steps", "4", "--log", folder_ / "one"}).status, 0);
  ASSERT_EQ(train(2, {"--steps", "4", "--log", folder_ / "two"}).status, 0);
  ASSERT_EQ(train(2, {"--steps", "4", "--micro-batch", "10", "--log", folder_ / "pieces"}).status, 0);
  const std::vector<double> one = losses(folder_ / "one");
  ASSERT_EQ(one.size(), 4U);
  for (const char* const name : {"two", "pieces"}) {
    const std::vector<double> several = losses(folder_ / name);
    ASSERT_EQ(several.size(), 4U) << name;
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(several[i], one[i], 1e-5 * one[i]) << name;
  }
}

TEST_F(TrainInRanksTest, a_sharded_state_is_saved_whole) {
  const std::string kept = folder_ / "kept";
  const Outcome whole = train(2, {"--steps", "8", "--momentum", "0.9", "--save", folder_ / "whole", "--json"});
  ASSERT_EQ(whole.status, 0) << whole.output;
  const Outcome begun = train(2, {"--steps", "4", "--momentum", "0.9", "--shard-state", "--checkpoint", kept,
                                  "--checkpoint-every", "2", "--json"});
  ASSERT_EQ(begun.status, 0) << begun.output;
  EXPECT_NEAR(state_bytes(begun), state_bytes(whole) / 2, 2048);
  const std::vector<std::string> rest{"--steps", "8",        "--momentum",
                                      "0.9",     "--resume", kept + "/checkpoint-000000004.safetensors"};
  const auto go_on = [&](int ranks, const char* name, const std::string& more) {
    std::vector<std::string> words = rest;
    for (const std::string& word : {std::string("--save"), folder_ / name}) words.push_back(word);
    if (!more.empty()) words.push_back(more);
    const Outcome outcome = train(ranks, words);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return parameters(folder_ / name);
  };
  const std::vector<float> expected = parameters(folder_ / "whole");
  EXPECT_EQ(difference(expected, go_on(2, "two", "")), 0) << "without shards";
  EXPECT_EQ(difference(expected, go_on(2, "shards", "--shard-state")), 0);
  EXPECT_LT(difference(expected, go_on(3, "three", "--shard-state")), 1e-6);
  EXPECT_LT(difference(expected, go_on(1, "one", "")), 1e-6);
}

TEST_F(TrainInRanksTest, a_state_in_shares_of_whole_parameters_is_saved_whole) {
  optimizer_ = "adafactor";
  const std::string kept = folder_ / "kept";
  ASSERT_EQ(train(2, {"--steps", "4", "--save", folder_ / "whole"}).status, 0);
  ASSERT_EQ(train(2, {"--steps", "2", "--shard-state", "--checkpoint", kept, "--checkpoint-every", "2"}).status, 0);
  const std::string file = kept + "/checkpoint-000000002.safetensors";
  ASSERT_EQ(train(3, {"--steps", "4", "--shard-state", "--resume", file, "--save", folder_ / "again"}).status, 0);
  EXPECT_LT(difference(parameters(folder_ / "whole"), parameters(folder_ / "again")), 1e-6);
}

TEST_F(TrainInRanksTest, a_test_is_shared_out_and_its_figures_are_those_of_one_process) {
  rate_ = "1e-30";  // the same network after any number of ranks
  batch_ = "4";
  std::vector<double> figures;
  for (const int ranks : {1, 2, 3}) {
    const std::string log = folder_ / ("log" + std::to_string(ranks));
    const Outcome outcome = train(ranks, {"--steps", "2", "--log", log});
    ASSERT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_EQ(line_of(log, "start")["test_samples"], 6) << "a batch and a half: of three ranks one has none";
    figures.push_back(line_of(log, "epoch")["test_loss"]);
  }
  EXPECT_EQ(figures[1], figures[0]);
  EXPECT_EQ(figures[2], figures[0]);
}

TEST_F(TrainInRanksTest, synchronised_batch_norms_keep_the_statistics_of_one_process) {
  const auto digits = [&](int ranks, const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> words{built_program("samebytes"),
                                   "train",
                                   "digits",
                                   "--steps",
                                   "3",
                                   "--batch",
                                   "50",
                                   "--optimizer",
                                   "sgd",
                                   "--rate",
                                   "1e-30",
                                   "--schedule",
                                   "constant",
                                   "--quiet",
                                   "--save",
                                   folder_ / name,
                                   "--log",
                                   folder_ / (name + ".log")};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run_ranks(ranks, words);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return parameters(folder_ / name);
  };
  const std::vector<float> one = digits(1, "one", {});
  EXPECT_LT(difference(one, digits(2, "two", {"--sync-batch-norm"})), 1e-5);
  EXPECT_GT(difference(one, digits(2, "apart", {})), 1e-4) << "each its own";
  const nlohmann::json test = line_of(folder_ / "one.log", "epoch"), shared = line_of(folder_ / "two.log", "epoch");
  EXPECT_EQ(shared["test_accuracy"], test["test_accuracy"]);
  EXPECT_NEAR(shared["test_loss"].get<double>(), test["test_loss"].get<double>(), 1e-5);
  EXPECT_EQ(line_of(folder_ / "two.log", "start")["sync_batch_norm"], true);
}

TEST_F(TrainInRanksTest, what_only_one_process_can_do_is_refused) {
  const Outcome adaptive = train(2, {"--steps", "1", "--adaptive-batch"});
  EXPECT_NE(adaptive.status, 0);
  EXPECT_THAT(adaptive.output, HasSubstr("--adaptive-batch is for one process"));
  const Outcome pieces = train(2, {"--steps", "1", "--sync-batch-norm", "--micro-batch", "5"});
  EXPECT_NE(pieces.status, 0);
  EXPECT_THAT(pieces.output, HasSubstr("they may have different numbers of them"));
  const Outcome bench = run_ranks(2, {built_program("samebytes"), "bench", "digits", "--steps", "1"});
  EXPECT_NE(bench.status, 0);
  EXPECT_THAT(bench.output, HasSubstr("only train works in several"));
}

}  // namespace
}  // namespace samebytes::testing
