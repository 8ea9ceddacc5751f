// A test of a binary workload, shared out over ranks: scores of all of them make one area under the curve.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "samebytes/distributed.h"
#include "support/files.h"
#include "support/mpirun.h"

namespace samebytes::testing {
namespace {

// 60 curves, in every third one a transit that is deep or hardly there.
std::string made_curves(const TemporaryFolder& folder) {
  constexpr int kPoints = 201, kCurves = 60;
  std::string text = "label";
  for (int i = 0; i < kPoints; ++i) text += ",f" + std::to_string(i);
  for (int curve = 0; curve < kCurves; ++curve) {
    const bool is_transit = curve % 3 == 0;
    const double depth = 0.004 * (curve % 7);
    text += is_transit ? "\n1" : "\n0";
    for (int i = 0; i < kPoints; ++i)
      text += "," + std::to_string(1 + 0.01 * ((curve * 7 + i) % 13) - (is_transit && i > 90 && i < 110 ? depth : 0));
  }
  put(folder / "curves.csv", text + "\n");
  return folder / "curves.csv";
}

TEST(SharedTest, scores_of_all_ranks_make_the_curve_of_one_process) {
  if (!distributed::is_available()) GTEST_SKIP() << "needs_mpi: this build has none";
  const TemporaryFolder folder;
  const std::string curves = made_curves(folder);
  std::vector<nlohmann::json> folds;
  for (const int ranks : {1, 3}) {  // twelve test curves in each fold, in batches of 5, 5 and 2
    std::vector<std::string> words{built_program("samebytes"),
                                   "train",
                                   "transit",
                                   "--data",
                                   curves,
                                   "--steps",
                                   "1",
                                   "--batch",
                                   "5",
                                   "--optimizer",
                                   "sgd",
                                   "--rate",
                                   "1e-30",
                                   "--quiet",
                                   "--json"};
    if (ranks > 1) words.push_back("--sync-batch-norm");
    const Outcome outcome = run_ranks(ranks, words);
    ASSERT_EQ(outcome.status, 0) << outcome.output;
    const std::size_t begin = outcome.output.find('{'), end = outcome.output.rfind('}');
    ASSERT_NE(begin, std::string::npos) << outcome.output;
    const auto summary = nlohmann::json::parse(outcome.output.substr(begin, end + 1 - begin), nullptr, false);
    ASSERT_TRUE(summary.is_object()) << outcome.output;
    folds.push_back(summary["folds"]["test_area_under_curve"]);
    ASSERT_EQ(folds.back().size(), 5U);
  }
  for (std::size_t fold = 0; fold < 5; ++fold)
    EXPECT_NEAR(folds[1][fold].get<double>(), folds[0][fold].get<double>(), 1e-9) << "fold " << fold;
}

}  // namespace
}  // namespace samebytes::testing
