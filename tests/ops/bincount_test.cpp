// bincount and histogram of many numbers against plain loops: parts, tables, numbers outside, types and views.
#include <gtest/gtest.h>

#include <vector>

#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class BincountTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(BincountTest);

using Ints = std::vector<std::int32_t>;

Ints counted(const Ints& numbers, std::int64_t bins) {
  Ints counts(static_cast<std::size_t>(bins), 0);
  for (const int n : numbers)
    if (n >= 0 && n < bins) ++counts[static_cast<std::size_t>(n)];
  return counts;
}

TEST_P(BincountTest, counts_numbers_of_any_amount) {
  std::vector<std::int64_t> amounts{1, 3, 1001};
  if (!is_simulated()) amounts.insert(amounts.end(), {16384, 70003});
  for (const std::int64_t n : amounts)
    for (const std::int64_t bins : {1, 300, 2049}) {
      SCOPED_TRACE(std::to_string(n) + " " + std::to_string(bins));
      Ints numbers;  // a third is outside
      for (const double u : random_values(n, 4, -0.2, 1.2))
        numbers.push_back(static_cast<int>(u * static_cast<double>(bins)) - (u < 0));
      const Array ids = array(numbers, {n}).wait(), counts = bincount(ids, bins);
      const std::uint64_t before = engine().plans().launches;
      counts.wait();
      EXPECT_LE(engine().plans().launches - before, 2u);
      EXPECT_EQ(counts.to_vector<std::int32_t>(), counted(numbers, bins));
    }
}

TEST_P(BincountTest, takes_bytes_views_and_nothing) {
  Ints numbers;
  for (int i = 0; i < 600; ++i) numbers.push_back(i * 7 % 256);
  const Array ids = array(numbers, {20, 30});
  EXPECT_EQ(bincount(astype(ids, u8), 250).to_vector<std::int32_t>(), counted(numbers, 250));
  EXPECT_EQ(bincount(transpose(ids), 250).to_vector<std::int32_t>(), counted(numbers, 250));
  EXPECT_EQ(bincount(slice(ids, 1, 0, 30, 3), 1000).dtype(), i32);
  EXPECT_EQ(sum(bincount(slice(ids, 1, 0, 30, 3), 1000)).to_vector<std::int32_t>()[0], 200);
  EXPECT_EQ(bincount(zeros({0, 3}, i32), 2).to_vector<std::int32_t>(), (Ints{0, 0}));
  EXPECT_EQ(bincount(ids, 0).shape(), Shape{0});
  const Array equal_ones = full({5000}, 3, i32);
  EXPECT_EQ(bincount(equal_ones, 5).to_vector<std::int32_t>(), (Ints{0, 0, 0, 5000, 0}));
}

TEST_P(BincountTest, a_histogram_counts_each_value_once) {
  const auto values = random_values(3000, 5, -1.5, 1.5);
  std::int64_t inside = 0;
  for (const double v : values) inside += v >= -1 && v <= 1;
  const Array counts = histogram(real_array(values, {3000}, f32), 37, -1, 1);
  EXPECT_EQ(counts.shape(), Shape{37});
  EXPECT_EQ(sum(counts).to_vector<std::int32_t>()[0], inside);
}

}  // namespace
}  // namespace samebytes::testing
