#include "samebytes/budget.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <vector>

#include "samebytes/error.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

TEST(Budget, bytes_are_read_in_powers_of_1000_and_of_1024) {
  EXPECT_EQ(parse_bytes("1.5GB"), 1'500'000'000u);
  EXPECT_EQ(parse_bytes("1.5GiB"), 1'610'612'736u);
  EXPECT_EQ(parse_bytes("800 MB"), 800'000'000u);
  EXPECT_EQ(parse_bytes("512mib"), 512u << 20);
  EXPECT_EQ(parse_bytes("64k"), 64'000u);
  EXPECT_EQ(parse_bytes("64Ki"), 65'536u);
  EXPECT_EQ(parse_bytes("2G"), 2'000'000'000u);
  EXPECT_EQ(parse_bytes("0.001T"), 1'000'000'000u);
  EXPECT_EQ(parse_bytes("123456"), 123'456u);
  EXPECT_EQ(parse_bytes("7B"), 7u);
}

TEST(Budget, sizes_are_said_in_the_unit_that_suits_them) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(999), "999 bytes");
  EXPECT_EQ(bytes_text(1000), "1 kB");
  EXPECT_EQ(bytes_text(1'234), "1.23 kB");
  EXPECT_EQ(bytes_text(999'499), "999 kB");
  EXPECT_EQ(bytes_text(999'500), "1 MB");
  EXPECT_EQ(bytes_text(43'210'000), "43.2 MB");
  EXPECT_EQ(bytes_text(1'500'000'000), "1.5 GB");
  EXPECT_EQ(bytes_text(std::size_t{7} << 60), "8.07 EB");
}

TEST(Budget, another_text_is_an_error_that_says_what_is_expected) {
  for (const char* text : {"", "GB", "1.5.GB", "-1GB", "1GBB", "1 parsec", "0", "0.1", "1e3", "1Gi B", "99999999T"}) {
    try {
      parse_bytes(text);
      ADD_FAILURE() << text;
    } catch (const ArgumentError& error) {
      EXPECT_NE(std::string(error.what())
                    .find("GiB, TiB (powers of 1024) behind it, such as 1.5GB; got '" + std::string(text) + "'"),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(Budget, the_largest_batch_is_found_in_few_plans) {
  for (const std::int64_t most : {1, 2, 7, 100, 1000, 60'000}) {
    for (const std::size_t budget : {1u, 299u, 300u, 301u, 1'234u, 70'000u, 100'000'000u}) {
      int calls = 0;
      const auto peak = [&](std::int64_t batch) {
        ++calls;
        return static_cast<std::size_t>(200 + 100 * batch);
      };
      const auto found = largest_batch({.most = most, .budget = budget}, peak);
      if (budget < 300) {
        EXPECT_FALSE(found);
        continue;
      }
      EXPECT_EQ(found, std::min<std::int64_t>(most, (static_cast<std::int64_t>(budget) - 200) / 100)) << budget;
      EXPECT_LE(calls, 2 * 17 + 1);
    }
  }
}

TEST(Budget, reserve_cap_and_multiple_are_kept) {
  const auto peak = [](std::int64_t batch) { return static_cast<std::size_t>(batch); };
  EXPECT_EQ(largest_batch({.budget = 1000}, peak), 1000);
  EXPECT_EQ(largest_batch({.budget = 1000, .reserve = 100}, peak), 900);
  EXPECT_EQ(largest_batch({.budget = 1000, .reserve = 100, .cap = 500}, peak), 500);
  EXPECT_EQ(largest_batch({.multiple = 16, .budget = 1000}, peak), 992);
  EXPECT_EQ(largest_batch({.multiple = 16, .budget = 10}, peak), 10);
  EXPECT_EQ(largest_batch({.budget = 10, .reserve = 20}, peak), std::nullopt);
  EXPECT_ERROR((largest_batch({.least = 5, .most = 4}, peak)), ArgumentError,
               "largest_batch: expected 1 <= least <= most and a multiple of 1 or more, got 5, 4 and 1");
}

const std::vector<Technique> kTechniques = {
    {"recompute", {"a little", "all"}}, {"micro", {"2", "4"}}, {"release", {"release"}}, {"moments", {"moments"}}};

// A step of 1000 bytes: activations 500 (recomputation 400, 200; micro-batches divide), gradients 100, state 400.
std::optional<std::size_t> simulated(std::span<const int> levels) {
  if (levels[1] > 0 && levels[2] > 0) return {};  // release excludes accumulation
  const std::size_t activations = (levels[0] == 0 ? 500u : levels[0] == 1 ? 400u : 200u) >> levels[1];
  return activations + (levels[2] > 0 ? 10u : 100u) + (levels[3] > 0 ? 200u : 400u);
}

TEST(Budget, techniques_are_taken_in_their_order_and_no_more_than_needed) {
  const auto choose = [](std::size_t budget) { return choose_within_budget(budget, kTechniques, simulated); };
  const auto text = [&](std::size_t budget) { return choose(budget).to_text(kTechniques); };
  EXPECT_EQ(text(1000), "nothing");
  EXPECT_EQ(choose(1000).tried, 1);
  EXPECT_EQ(text(950), "a little");
  EXPECT_EQ(text(899), "all");
  EXPECT_EQ(text(699), "4");  // recomputation alone comes to 700; beside micro-batches it is taken back
  EXPECT_EQ(text(560), "all, 4");
  EXPECT_EQ(text(360), "all, 4, moments");
  for (std::size_t budget = 1000; budget >= 350; --budget) {
    const BudgetChoice choice = choose(budget);
    ASSERT_TRUE(choice.fits) << budget;
    EXPECT_LE(choice.planned, budget);
    EXPECT_EQ(choice.planned, simulated(choice.levels));
    EXPECT_LE(choice.tried, 40);
  }
}

TEST(Budget, levels_that_do_not_go_with_a_run_are_left_out) {
  const auto without_all = [](std::span<const int> levels) {
    return levels[0] > 1 ? std::nullopt : simulated(levels);  // such as checkpointing a model without blocks
  };
  EXPECT_EQ(choose_within_budget(900, kTechniques, without_all).to_text(kTechniques), "a little");
  EXPECT_EQ(choose_within_budget(600, kTechniques, without_all).to_text(kTechniques), "a little, 4");
}

TEST(Budget, more_pieces_may_need_more_memory_than_fewer) {
  const std::vector<Technique> pieces = {{"micro-batches", {"32", "16", "8", "4", "2", "1"}}};
  const auto peak = [](std::span<const int> levels) -> std::optional<std::size_t> {
    const std::size_t count = std::size_t{1} << levels[0];
    return 1024 / count + 8 * count;  // a piece's activations, and what each piece keeps
  };
  EXPECT_EQ(choose_within_budget(192, pieces, peak).to_text(pieces), "8");
  EXPECT_EQ(choose_within_budget(300, pieces, peak).to_text(pieces), "16");
  EXPECT_EQ(choose_within_budget(191, pieces, peak).planned, 192u);
}

TEST(Budget, where_nothing_fits_the_smallest_peak_is_told) {
  const BudgetChoice choice = choose_within_budget(300, kTechniques, simulated);
  EXPECT_FALSE(choice.fits);
  EXPECT_EQ(choice.planned, 350u);
  EXPECT_EQ(choice.to_text(kTechniques), "all, 4, moments");
}

}  // namespace
}  // namespace samebytes::testing
