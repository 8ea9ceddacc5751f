// Several processes under mpirun against one: the group's functions, and training on shares of a batch.
#include "samebytes/distributed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/mpirun.h"
#include "support/process.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

class DistributedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!distributed::is_available()) GTEST_SKIP() << "needs_mpi: this build has none";
  }
  static Outcome run(int ranks, std::vector<std::string> words) {
    words.insert(words.begin(), built_program("train_in_ranks"));
    return run_ranks(ranks, words);
  }
  // The parameters after training in so many processes; 1: without mpirun.
  static std::vector<float> train(int ranks, const std::vector<std::string>& way, std::string* said = nullptr) {
    const std::string file = temporary_path("ranks");
    std::vector<std::string> words{"train", file};
    words.insert(words.end(), way.begin(), way.end());
    const Outcome outcome = run(ranks, words);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    if (said) *said = outcome.output;
    const std::string bytes = get(file);
    std::remove(file.c_str());
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    EXPECT_GT(values.size(), 6000U) << outcome.output;
    return values;
  }
  // The largest difference, in units of the largest value.
  static double difference(const std::vector<float>& a, const std::vector<float>& b) {
    if (a.size() != b.size()) return HUGE_VAL;
    double largest = 0, most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(a[i])));
      most = std::max(most, std::abs(static_cast<double>(a[i]) - b[i]));
    }
    return most / largest;
  }
};

TEST_F(DistributedTest, collectives_are_right_on_two_and_on_three_ranks) {
  for (const int ranks : {2, 3}) {
    const Outcome outcome = run(ranks, {"collectives"});
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_THAT(outcome.output,
                HasSubstr("rank " + std::to_string(ranks - 1) + " of " + std::to_string(ranks) + " is done"));
  }
}

TEST_F(DistributedTest, ranks_train_as_one_process_and_repeat_bit_for_bit) {
  const std::vector<float> one = train(1, {});
  const std::vector<float> two = train(2, {}), three = train(3, {"bucket=0.01"});
  EXPECT_LT(difference(one, two), 1e-6);
  EXPECT_LT(difference(one, three), 1e-6) << "shares of 16, 17 and 17 samples";
  EXPECT_EQ(difference(two, train(2, {})), 0) << "again";
  EXPECT_EQ(difference(three, train(3, {"bucket=0.01"})), 0) << "again";
}

TEST_F(DistributedTest, buckets_and_overlap_change_no_byte_and_nothing_is_copied) {
  std::string said;
  const std::vector<float> two = train(2, {}, &said);
  EXPECT_THAT(said, HasSubstr("steps 6 buckets 1 copied 0 "));
  EXPECT_EQ(difference(two, train(2, {"overlap=0"})), 0);
  EXPECT_EQ(difference(two, train(2, {"bucket=0.01"}, &said)), 0);
  EXPECT_THAT(said, HasSubstr("steps 6 buckets 2 copied 0 "));
  EXPECT_EQ(difference(two, train(2, {"held", "bucket=0.01"})), 0) << "flat gradients that somebody holds";
  EXPECT_EQ(difference(two, train(2, {"nan"})), 0) << "check_nan runs op by op";
}

TEST_F(DistributedTest, clipping_and_adamw_see_the_mean_over_all_ranks) {
  EXPECT_LT(difference(train(1, {"clip"}), train(2, {"clip"})), 1e-6);
  EXPECT_LT(difference(train(1, {"clip", "adamw"}), train(2, {"clip", "adamw"})), 1e-4) << "divides by tiny moments";
}

TEST_F(DistributedTest, accumulated_gradients_are_reduced_once) {
  std::string said;
  EXPECT_LT(difference(train(1, {}), train(2, {"accumulate"}, &said)), 1e-6);
  EXPECT_THAT(said, HasSubstr("steps 6 "));
}

TEST_F(DistributedTest, gradients_in_sixteen_bits_are_summed_in_f32) {
  EXPECT_LT(difference(train(1, {"bf16"}), train(2, {"bf16"})), 1e-2);
}

}  // namespace
}  // namespace samebytes::testing
