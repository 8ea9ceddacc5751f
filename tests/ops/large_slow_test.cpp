// Arrays of more than 2^31 elements: the index arithmetic of the ops that walk over any number of elements. A driver
// may refuse one allocation of this size, so the bytes are the host's own, adopted in system mode; where an op takes
// floating arrays only, a broadcast view has the elements without the memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

constexpr std::int64_t kRows = (std::int64_t{1} << 21) + 3, kColumns = 1024;  // 2^31 + 3072
constexpr std::int64_t kElements = kRows * kColumns;

class LargeTest : public ::testing::TestWithParam<DeviceCase> {
 protected:
  void SetUp() override {
    if (GetParam().memory && *GetParam().memory != MemoryMode::system) GTEST_SKIP() << "one memory mode is enough";
    try {
      engine_ = make_engine({.personality = GetParam().personality, .memory = MemoryMode::system});
    } catch (const ArgumentError& error) {
      GTEST_SKIP() << "needs a device that reads the host's own memory: " << error.what();
    }
    if (engine_->device().platform.find("Oclgrind") != std::string::npos)
      GTEST_SKIP() << "a simulated device is too slow for 2^31 elements";
    scope_.emplace(*engine_);
  }

  // Bytes that count rows modulo 251.
  static Array counting_rows() {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(kElements));
    for (std::int64_t row = 0; row < kRows; ++row)
      std::fill_n(bytes.data() + row * kColumns, kColumns, static_cast<std::uint8_t>(row % 251));
    Adoption verdict;
    const Array a = adopt(std::move(bytes), {kRows, kColumns}, &verdict);
    EXPECT_TRUE(verdict.adopted) << verdict.reason;
    return a;
  }

  std::unique_ptr<Engine> engine_;
  std::optional<EngineScope> scope_;
};
SAMEBYTES_ON_EVERY_DEVICE(LargeTest);

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

TEST_P(LargeTest, reductions_read_every_element) {
  // Untouched pages of zeros cost no memory; only the last row is written.
  float* values = static_cast<float*>(std::calloc(static_cast<std::size_t>(kElements), sizeof(float)));
  if (!values) GTEST_SKIP() << "no 8 GiB of addresses";
  std::fill_n(values + (kRows - 1) * kColumns, kColumns, 1.0f);
  Adoption verdict;
  const Array a = adopt(
      values, {kRows, kColumns}, f32, [values] { std::free(values); }, &verdict);
  ASSERT_TRUE(verdict.adopted) << verdict.reason;
  EXPECT_EQ(sum(a).value(), kColumns);
  const auto rows = sum(a, {1}).to_vector<float>();
  EXPECT_EQ(rows[static_cast<std::size_t>(kRows - 1)], kColumns);
  EXPECT_EQ(rows[static_cast<std::size_t>(kRows - 2)], 0);
  EXPECT_EQ(argmax(transpose(slice(a, 1, kColumns - 1, kColumns))).to_vector<std::int32_t>()[0], kRows - 1);
}

}  // namespace
}  // namespace samebytes::testing
