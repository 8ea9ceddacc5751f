// samebytes train under mpirun: the steps of one process, one log, one checkpoint for any number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
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
  }
  Outcome train(int ranks, std::vector<std::string> options) {
    std::vector<std::string> words{built_program("samebytes"),
                                   "train",
                                   "digits",
                                   "--optimizer",
                                   "sgd",
                                   "--rate",
                                   "0.01",
                                   "--schedule",
                                   "constant",
                                   "--batch",
                                   "50"};
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
  TemporaryFolder folder_;
};

TEST_F(TrainInRanksTest, ranks_take_the_steps_of_one_process_and_rank_0_alone_writes) {
  ASSERT_EQ(train(1, {"--steps", "8", "--save", folder_ / "one"}).status, 0);
  const Outcome two = train(2, {"--steps", "8", "--save", folder_ / "two", "--log", folder_ / "log", "--json"});
  ASSERT_EQ(two.status, 0) << two.output;
  EXPECT_LT(difference(parameters(folder_ / "one"), parameters(folder_ / "two")), 1e-6);
  const std::string log = get(folder_ / "log");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1 + 8 + 1 + 1) << log;  // start, steps, epoch, summary
  EXPECT_THAT(two.output, HasSubstr("\"samples\":400,"));
  EXPECT_THAT(two.output, HasSubstr("\"ranks\":{\"size\":2,\"buckets\":1,"));
  EXPECT_THAT(two.output, HasSubstr("\"bytes_copied_per_step\":0.0,"));
}

TEST_F(TrainInRanksTest, any_number_of_ranks_goes_on_from_one_checkpoint) {
  const std::string kept = folder_ / "kept";
  ASSERT_EQ(train(1, {"--steps", "40", "--save", folder_ / "whole"}).status, 0);  // into the second epoch
  ASSERT_EQ(train(2, {"--steps", "30", "--checkpoint", kept, "--checkpoint-every", "10"}).status, 0);
  const Outcome three = train(
      3, {"--steps", "40", "--checkpoint", kept, "--resume", "auto", "--save", folder_ / "three", "--accumulate", "1"});
  ASSERT_EQ(three.status, 0) << three.output;
  EXPECT_THAT(three.output, HasSubstr("goes on after step 30"));
  EXPECT_LT(difference(parameters(folder_ / "whole"), parameters(folder_ / "three")), 1e-5);
}

TEST_F(TrainInRanksTest, what_only_one_process_can_do_is_refused) {
  const Outcome adaptive = train(2, {"--steps", "1", "--adaptive-batch"});
  EXPECT_NE(adaptive.status, 0);
  EXPECT_THAT(adaptive.output, HasSubstr("--adaptive-batch is for one process"));
  const Outcome bench = run_ranks(2, {built_program("samebytes"), "bench", "digits", "--steps", "1"});
  EXPECT_NE(bench.status, 0);
  EXPECT_THAT(bench.output, HasSubstr("only train works in several"));
}

}  // namespace
}  // namespace samebytes::testing
