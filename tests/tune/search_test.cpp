// The search for better choices: what is wrong or does not build never gets as far as being timed, and every tile that
// is offered computes the same numbers.
#include "tune/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/runtime.h"
#include "support/errors.h"
#include "support/files.h"

namespace samebytes::detail {
namespace {

using ::samebytes::testing::get;
using ::samebytes::testing::put;
using ::samebytes::testing::TemporaryFolder;
using ::testing::HasSubstr;

class SearchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* device = std::getenv("SAMEBYTES_TEST_DEVICE")) device_ = device;
    info_ = Engine({.device = device_, .tuning = ""}).device();
    if (info_.personality != Personality::cpu) GTEST_SKIP() << "tiles are tuned in the cpu personality";
  }
  const Tunable& first_tile(const std::string& family) const {
    for (const Tunable& row : tunables(Personality::cpu))
      if (row.kind == Tunable::Kind::tile && row.family == family && row.candidates.size() > 1) return row;
    throw ArgumentError("no tile of " + family);
  }
  // The odd shapes, which are checked and not timed.
  static std::vector<const Problem*> odd_problems(const std::string& group) {
    std::vector<const Problem*> problems;
    for (const Problem& problem : tuning_problems())
      if (problem.group == group && !problem.is_timed) problems.push_back(&problem);
    return problems;
  }

  std::string device_;
  DeviceInfo info_;
};

TEST_F(SearchTest, a_wrong_candidate_and_one_that_does_not_build_are_refused) {
  const Tunable& tile = first_tile("gemm");
  const std::int64_t wrong = tile.candidates[0], unbuilt = tile.candidates[1];
  const TemporaryFolder folder;
  std::filesystem::copy(std::filesystem::path(samebytes::testing::source_folder()) / "cl", folder / "cl",
                        std::filesystem::copy_options::recursive);
  const std::string file = folder / "cl/cpu/gemm.cl";
  const std::string given = "#if defined(" + tile.name + ") && " + tile.name + " == ";
  put(file, given + std::to_string(wrong) +
                "\n#undef FMA\n#define FMA(a, b, c) (fma(a, b, c) + REAL_C(0.125))\n#endif\n" + given +
                std::to_string(unbuilt) + "\n#error planted\n#endif\n" + get(file));
  setenv("SAMEBYTES_KERNEL_DIR", (folder / "cl").c_str(), 1);
  Search search({.device = device_}, {});
  const std::vector<const Problem*> problems = odd_problems("gemm");
  const Verdict first = search.judge({{tile.key, wrong}}, problems, GemmProvider::packed);
  const Verdict second = search.judge({{tile.key, unbuilt}}, problems, GemmProvider::packed);
  unsetenv("SAMEBYTES_KERNEL_DIR");
  EXPECT_EQ(first.outcome, Outcome::wrong) << first.why;
  EXPECT_THAT(first.why, HasSubstr("instead of"));
  EXPECT_EQ(second.outcome, Outcome::not_built) << second.why;
  EXPECT_THAT(second.why, HasSubstr("cpu/gemm.cl"));
}

TEST_F(SearchTest, odd_tiles_give_the_same_numbers_and_the_same_bytes_again) {
  Values values;
  for (const Tunable& row : tunables(Personality::cpu)) {
    if (row.kind != Tunable::Kind::tile) continue;
    for (const std::int64_t candidate : row.candidates) {
      values[row.key] = candidate;
      if (!find_clash(values, Personality::cpu, vector_width_of(info_, f32))) break;
      values.erase(row.key);
    }
  }
  ASSERT_GE(values.size(), 3u);
  Contender plain(device_, {}, GemmProvider::packed), odd(device_, values, GemmProvider::packed),
      again(device_, values, GemmProvider::packed);
  for (const std::string group : {"gemm", "conv"})
    for (const Problem* problem : odd_problems(group)) {
      const std::vector<float> came = odd.result(*problem);
      EXPECT_EQ(difference(*problem, plain.result(*problem), came), "") << problem->kernel << " " << problem->shape;
      EXPECT_EQ(again.result(*problem), came);
    }
}

TEST_F(SearchTest, a_difference_beyond_rounding_is_seen) {
  const Problem& problem = *odd_problems("gemm").front();
  const std::vector<float> want{1, 2, 3};
  EXPECT_EQ(difference(problem, want, {1, 2, 3}), "");
  EXPECT_EQ(difference(problem, want, {1, 2, 3.0001f}), "value 2 is 3.000100 instead of 3.000000");
  EXPECT_NE(difference(problem, want, {1, NAN, 3}), "");
  EXPECT_NE(difference(problem, want, {1, 2}), "");
}

TEST_F(SearchTest, wrong_wishes_are_refused_at_the_call) {
  setenv("SAMEBYTES_TUNING", "off", 1);
  EXPECT_ERROR(tune({.only = {"softmax"}}), ArgumentError, "tune: only takes gemm, conv and clblast, got \"softmax\"");
  EXPECT_ERROR(tune({.seconds = 1}), ArgumentError,
               "tune: there is no place for a store: SAMEBYTES_TUNING is off, or neither XDG_CACHE_HOME nor HOME is "
               "set");
}

}  // namespace
}  // namespace samebytes::detail
