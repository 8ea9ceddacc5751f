// A rank that is killed, and one that falls silent: the others end within 30 seconds, say which, and what they wrote
// last is whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "samebytes/distributed.h"
#include "samebytes/run_state.h"
#include "support/files.h"
#include "support/mpirun.h"

namespace samebytes::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class RankFailureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!distributed::is_available()) GTEST_SKIP() << "needs_mpi: this build has none";
  }
  std::vector<std::string> training(const std::string& steps) const {
    return {built_program("samebytes"),
            "train",
            "digits",
            "--quiet",
            "--schedule",
            "constant",
            "--steps",
            steps,
            "--checkpoint",
            folder_ / "kept",
            "--checkpoint-every",
            "10",
            "--rank-timeout",
            "4"};
  }
  // Rank 1 gets the signal a second after the first checkpoint was there.
  Outcome train_with(const std::string& signal, double* seconds) {
    const std::vector<std::string> words = training("1000000");
    std::vector<std::string> all = words;
    for (const std::string& word :
         {std::string(":"), std::string("-n"), std::string("1"), std::string("sh"), std::string("-c"),
          "\"$@\" & until ls '" + (folder_ / "kept") +
              "'/*.safetensors; do sleep 0.1; done >/dev/null 2>&1; sleep 1; " + "kill -" + signal + " $!; wait $!",
          std::string("rank_1")})
      all.push_back(word);
    all.insert(all.end(), words.begin(), words.end());
    const auto begun = std::chrono::steady_clock::now();
    const Outcome outcome = run_program(mpirun_words(1, all), mpirun_environment());
    *seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    return outcome;
  }
  void expect_goes_on() {
    const CheckpointFolder::Newest newest = CheckpointFolder(folder_ / "kept").newest();
    ASSERT_TRUE(newest.checkpoint.has_value());
    EXPECT_TRUE(newest.damaged.empty());
    std::vector<std::string> words = training(std::to_string(newest.checkpoint->step + 5));
    words.insert(words.end(), {"--resume", "auto"});
    const Outcome outcome = run_ranks(2, words);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
  }
  TemporaryFolder folder_;
};

TEST_F(RankFailureTest, a_killed_rank_ends_the_run_which_then_goes_on) {
  double seconds = 0;
  const Outcome outcome = train_with("KILL", &seconds);
  EXPECT_NE(outcome.status, 0);
  EXPECT_LT(seconds, 33);
  // Rank 0 says so, or mpirun, which may end the job first: "Process name: [[27032,1],1]".
  EXPECT_THAT(outcome.output,
              AnyOf(HasSubstr("rank 1"), HasSubstr("one of them has died"), HasSubstr(",1],1]\n  Exit code:    137")));
  expect_goes_on();
}

TEST_F(RankFailureTest, a_silent_rank_ends_the_run_which_then_goes_on) {
  double seconds = 0;
  const Outcome outcome = train_with("STOP", &seconds);
  EXPECT_NE(outcome.status, 0);
  EXPECT_LT(seconds, 33);
  EXPECT_THAT(outcome.output, HasSubstr("distributed: rank 1 gave no sign of life for 4 seconds"));
  EXPECT_THAT(outcome.output, HasSubstr("is whole, --resume auto goes on from it"));
  expect_goes_on();
}

}  // namespace
}  // namespace samebytes::testing
