// Arrays of more than 2^31 elements: the index arithmetic of the ops that walk over any number of elements. Bytes are
// the widest arrays that fit one allocation; where an op takes floating arrays only, a broadcast view has the elements
// without the memory.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

constexpr std::int64_t kRows = (std::int64_t{1} << 21) + 3, kColumns = 1024;  // 2^31 + 3072
constexpr std::int64_t kElements = kRows * kColumns;
constexpr std::size_t kNeeded = std::size_t{6} << 30;

class LargeTest : public OnDevice {
 protected:
  void SetUp() override {
    if (is_simulated()) GTEST_SKIP() << "a simulated device is too slow for 2^31 elements";
    if (engine().memory().limit_bytes < kNeeded) GTEST_SKIP() << "needs 6 GiB of memory";
    if (engine().device().max_allocation_bytes < static_cast<std::size_t>(kElements))
      GTEST_SKIP() << "the device's largest allocation is below 2^31 bytes";
    if (engine().device().memory_mode != MemoryMode::fine) GTEST_SKIP() << "one memory mode is enough";
  }
  void TearDown() override {
    OnDevice::TearDown();
    engine().clear_cache();
  }

  // Bytes that count rows modulo 251, written by the host.
  static Array counting_rows() {
    const Array a = empty({kRows, kColumns}, u8);
    const auto bytes = a.mutable_host<std::uint8_t>();
    for (std::int64_t row = 0; row < kRows; ++row)
      std::fill_n(bytes.data() + row * kColumns, kColumns, static_cast<std::uint8_t>(row % 251));
    return a;
  }
};
SAMEBYTES_ON_EVERY_DEVICE(LargeTest);

TEST_P(LargeTest, filling_and_slicing_reach_the_last_element) {
  const Array a = full({kElements}, 7, u8);
  EXPECT_EQ(slice(a, 0, kElements - 5, kElements).to_vector<std::uint8_t>(), std::vector<std::uint8_t>(5, 7));
}

TEST_P(LargeTest, take_slices_and_copies_read_behind_two_to_the_31) {
  const Array a = counting_rows();
  const std::vector<std::int32_t> rows{0, static_cast<std::int32_t>(kRows) - 1, 1 << 20};
  const Array index = array(std::span<const std::int32_t>(rows), {3});
  const auto taken = take(a, index, 0).to_vector<std::uint8_t>();
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(taken[i * kColumns + kColumns - 1], rows[i] % 251) << "row " << rows[i];
  // A strided copy, a pointwise chain and a joined one, of columns that lie all over the array.
  const Array column = slice(a, 1, kColumns - 1, kColumns);
  const auto copied = contiguous(column).to_vector<std::uint8_t>();
  const auto chained = (astype(column, i32) * 2.0 + 1.0).to_vector<std::int32_t>();
  const auto joined = concat({column, column}, 1).to_vector<std::uint8_t>();
  for (const std::int64_t row : {std::int64_t{0}, std::int64_t{1} << 20, kRows - 1}) {
    EXPECT_EQ(copied[static_cast<std::size_t>(row)], row % 251);
    EXPECT_EQ(chained[static_cast<std::size_t>(row)], row % 251 * 2 + 1);
    EXPECT_EQ(joined[static_cast<std::size_t>(2 * row + 1)], row % 251);
  }
}

TEST_P(LargeTest, reductions_count_every_element) {
  const Array one = broadcast_to(array({1.0f}), {kElements});
  EXPECT_NEAR(mean(one).value(), 1.0, 1e-3);
  const Array a = counting_rows();
  const auto largest = max(a, {1}).to_vector<std::uint8_t>();
  EXPECT_EQ(largest[static_cast<std::size_t>(kRows - 1)], (kRows - 1) % 251);
}

}  // namespace
}  // namespace samebytes::testing
