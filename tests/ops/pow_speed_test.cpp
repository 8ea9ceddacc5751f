// Time of powers on the CPU device, forward and backward, in additions of the same arrays. They take turns and the best
// round of each counts, so that other load on the machine hits both.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "samebytes/samebytes.h"
#include "support/devices.h"

namespace samebytes::testing {
namespace {

constexpr int kRounds = 12;
constexpr std::int64_t kElements = 1 << 20;

template <class Make>
double seconds_of(const Make& make) {
  const Array result = make();
  const auto start = std::chrono::steady_clock::now();
  result.wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(PowSpeed, powers_cost_a_few_additions) {
  Engine& engine = engine_of({});
  const EngineScope scope(engine);
  const Array x = uniform({kElements}, 0.5, 2.0), y = uniform({kElements}, 0.5, 2.0);
  eval({x, y});
  const auto plus = [&] { return x + y; };
  const auto power = [&](double e) { return [&x, e] { return pow(x, e); }; };
  const auto slope = [&](double e) { return [&x, e] { return gradients(sum(pow(x, e)), std::vector<Array>{x})[0]; }; };
  struct Row {
    double exponent, most;  // additions
  };
  // Products and roots; what only pow does takes some 20 additions forward.
  for (const Row& row :
       {Row{2, 6}, Row{3, 6}, Row{4, 6}, Row{0.5, 8}, Row{1.5, 8}, Row{-1, 8}, Row{-2, 8}, Row{2.3, 80}}) {
    double add = std::numeric_limits<double>::infinity(), forward = add, backward = add;
    for (int round = 0; round < kRounds; ++round) {
      add = std::min(add, seconds_of(plus));
      forward = std::min(forward, seconds_of(power(row.exponent)));
      backward = std::min(backward, seconds_of(slope(row.exponent)));
    }
    EXPECT_LT(forward / add, row.most) << "pow(x, " << row.exponent << ")";
    EXPECT_LT(backward / add, row.most) << "gradient of pow(x, " << row.exponent << ")";
    RecordProperty("pow_" + std::to_string(row.exponent),
                   std::to_string(forward / add) + " " + std::to_string(backward / add));
  }
}

}  // namespace
}  // namespace samebytes::testing
