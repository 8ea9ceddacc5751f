// Several processes under mpirun against one: the group's functions, and training on shares of a batch.
#include "samebytes/distributed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "distributed/combine.h"
#include "support/files.h"
#include "support/mpirun.h"
#include "support/process.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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
    const std::vector<float> values = values_of(ranks, "train", way, said);
    EXPECT_GT(values.size(), 6000U);
    return values;
  }
  static std::vector<float> values_of(int ranks, const std::string& mode, const std::vector<std::string>& way = {},
                                      std::string* said = nullptr) {
    const std::string file = temporary_path("ranks");
    std::vector<std::string> words{mode, file};
    words.insert(words.end(), way.begin(), way.end());
    const Outcome outcome = run(ranks, words);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    if (said) *said = outcome.output;
    const std::string bytes = get(file);
    std::remove(file.c_str());
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    EXPECT_FALSE(values.empty()) << outcome.output;
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

// Messages under way once wrote into memory that the failed step had given back.
TEST_F(DistributedTest, a_step_that_fails_waits_for_what_it_has_sent) {
  const Outcome outcome = run(2, {"fail"});
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("layer_norm_gradient: the launch failed"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("wrong:")));
}

TEST_F(DistributedTest, a_session_takes_the_steps_of_one_process_and_validates_once) {
  const std::vector<float> one = values_of(1, "session"), two = values_of(2, "session");
  EXPECT_LT(difference(one, two), 1e-4) << "divides by tiny moments";
  EXPECT_LT(difference(one, values_of(3, "session")), 1e-4);
  EXPECT_EQ(difference(two, values_of(2, "session")), 0) << "again";
}

TEST_F(DistributedTest, buckets_and_overlap_change_no_byte_and_nothing_is_copied) {
  std::string said;
  const std::vector<float> two = train(2, {}, &said);
  EXPECT_THAT(said, HasSubstr("steps 6 buckets 2 copied 0 "));
  EXPECT_EQ(difference(two, train(2, {"overlap=0"})), 0);
  EXPECT_EQ(difference(two, train(2, {"bucket=0.01"}, &said)), 0);
  EXPECT_THAT(said, HasSubstr("steps 6 buckets 3 copied 0 "));
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

TEST_F(DistributedTest, the_exchange_of_accumulated_gradients_lies_behind_the_last_backward_pass) {
  std::string said;
  const std::vector<float> after = train(2, {"accumulate"}), behind = train(2, {"at_once"}, &said);
  EXPECT_EQ(difference(after, behind), 0);
  EXPECT_THAT(said, HasSubstr("steps 6 buckets 2 copied 0 "));
  EXPECT_EQ(difference(behind, train(2, {"at_once", "bucket=0.01"})), 0);
  EXPECT_LT(difference(train(1, {"at_once", "clip"}), train(2, {"at_once", "clip"})), 1e-6);
}

TEST_F(DistributedTest, in_a_block_without_sync_nothing_is_sent) {
  std::string said;
  EXPECT_EQ(difference(train(2, {}), train(2, {"no_sync"}, &said)), 0);
  EXPECT_THAT(said, HasSubstr("steps 6 buckets 2 "));
}

TEST_F(DistributedTest, a_sharded_state_takes_the_same_steps_in_its_share_of_the_memory) {
  std::string said;
  for (const std::string optimizer : {"sgd", "adamw"}) {
    const std::vector<float> whole = train(2, {optimizer, "clip"}, &said);
    const auto elements = static_cast<std::int64_t>(whole.size()) * (optimizer == "sgd" ? 1 : 2);
    EXPECT_THAT(said, HasSubstr("state " + std::to_string(elements) + " of"));
    EXPECT_EQ(difference(whole, train(2, {optimizer, "clip", "shard"}, &said)), 0) << optimizer;
    const std::size_t at = said.find("state ");
    ASSERT_NE(at, std::string::npos) << said;
    EXPECT_NEAR(std::stod(said.substr(at + 6)), static_cast<double>(elements) / 2, 400) << "shares of whole blocks";
  }
  EXPECT_EQ(difference(train(3, {"adamw"}), train(3, {"adamw", "shard", "bucket=0.01"})), 0);
  EXPECT_LT(difference(train(1, {"adamw"}), train(2, {"adamw", "shard", "at_once"})), 1e-4);
}

TEST_F(DistributedTest, shares_of_whole_parameters_take_the_same_steps) {
  std::string said;
  const auto elements_of_state = [&] { return std::stod(said.substr(said.find("state ") + 6)); };
  for (const std::string optimizer : {"lars", "lamb", "adafactor"}) {
    const std::vector<float> whole = train(2, {optimizer, "clip"}, &said);
    const double all = elements_of_state();
    EXPECT_EQ(difference(whole, train(2, {optimizer, "clip", "shard"}, &said)), 0) << optimizer;
    EXPECT_LT(elements_of_state(), 0.7 * all) << optimizer;
    if (optimizer == "lars") continue;  // whose shares are those of Lamb
    EXPECT_LT(difference(train(1, {optimizer}), train(4, {optimizer, "shard", "bucket=0.01"})), 1e-6)
        << optimizer << ": more ranks than matrices";
  }
}

TEST_F(DistributedTest, synchronised_batch_norm_is_that_of_one_process) {
  const std::vector<float> one = train(1, {"norms"});
  const std::vector<float> three = train(3, {"norms", "bucket=0.01"});
  EXPECT_LT(difference(one, three), 1e-5) << "shares of 16, 17 and 17 samples";
  EXPECT_EQ(difference(three, train(3, {"norms", "bucket=0.01"})), 0) << "again";
  EXPECT_LT(difference(one, train(3, {"norms", "idle"})), 1e-5) << "a rank that counts nothing";
}

TEST_F(DistributedTest, gradients_in_sixteen_bits_are_summed_in_f32) {
  EXPECT_LT(difference(train(1, {"bf16"}), train(2, {"bf16"})), 1e-2);
}

TEST_F(DistributedTest, sixteen_bits_and_shards_go_together) {
  EXPECT_EQ(difference(train(2, {"bf16"}), train(2, {"bf16", "shard"})), 0);
}

TEST(Combine, whole_numbers_of_64_bits_keep_every_bit_and_wrap_around) {
  using distributed::detail::Combining;
  constexpr auto kLargest = std::numeric_limits<std::int64_t>::max(),
                 kSmallest = std::numeric_limits<std::int64_t>::min();
  const std::vector<std::int64_t> first{(1LL << 53) + 1, -7, 1LL << 40, kLargest},
      second{2, -(1LL << 60), 1LL << 33, 1};
  const std::vector<const std::byte*> sources{reinterpret_cast<const std::byte*>(first.data()),
                                              reinterpret_cast<const std::byte*>(second.data())};
  const std::vector<double> weights{1, 1};
  const auto combined = [&](Combining::Kind kind) {
    std::vector<std::int64_t> dst(first.size());
    distributed::detail::combine(i64, {kind, weights}, sources, reinterpret_cast<std::byte*>(dst.data()), dst.size());
    return dst;
  };
  using Wholes = std::vector<std::int64_t>;
  EXPECT_EQ(combined(Combining::Kind::weighted),
            (Wholes{(1LL << 53) + 3, -7 - (1LL << 60), (1LL << 40) + (1LL << 33), kSmallest}));
  EXPECT_EQ(combined(Combining::Kind::max), (Wholes{(1LL << 53) + 1, -7, 1LL << 40, kLargest}));
  EXPECT_EQ(combined(Combining::Kind::min), (Wholes{2, -(1LL << 60), 1LL << 33, 1}));
}

TEST(WithoutMpi, several_processes_are_an_error_that_says_what_to_install) {
  if (distributed::is_available()) GTEST_SKIP() << "this build has MPI";
  const Outcome outcome = run_program({built_program("samebytes"), "train", "digits", "--steps", "1"},
                                      {{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}});
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.output, HasSubstr("this build of Samebytes has no MPI"));
  EXPECT_THAT(outcome.output, HasSubstr("install libopenmpi-dev"));
}

}  // namespace
}  // namespace samebytes::testing
