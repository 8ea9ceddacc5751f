// Host loops of every level of instructions that this CPU has give the bytes of the baseline; a product of Eigen's is
// as exact.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "ops/native.h"

namespace samebytes::detail {
namespace {

using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::Pointwise;

std::vector<float> values(std::size_t n) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> any(-2, 2);
  std::vector<float> out(n);
  for (float& v : out) v = any(random);
  return out;
}

struct Results {
  std::vector<float> sums, columns, dots, pointwise, turned, rows, scans, product;
  std::vector<std::int32_t> largest;
};

template <HostLevel L>
Results run() {
  constexpr std::int64_t rows = 9, columns = 333;
  const auto a = values(rows * columns), b = values(columns * rows);
  Results r;
  r.sums.resize(rows);
  host_reduce_rows_at<L, float>({.what = 3, .rows = rows, .columns = columns, .rows_per_group = 4, .divisor = 3},
                                a.data(), r.sums.data());
  r.columns.resize(columns);
  host_reduce_columns_at<L, float>({.outer = 1, .reduced = rows, .inner = columns, .tile = 256, .divisor = 7}, a.data(),
                                   r.columns.data());
  r.dots.resize(rows * rows);
  host_product_at<L, float>({.m = rows,
                             .n = rows,
                             .k = columns,
                             .a_row = columns,
                             .a_col = 1,
                             .b_row = 1,
                             .b_col = columns,
                             .by_lanes = true},
                            a.data(), b.data(), nullptr, nullptr, r.dots.data(), 0, 1);
  r.scans.resize(a.size());
  host_sums_at<L, float>({.outer = rows, .depth = columns}, a.data(), r.scans.data());
  r.largest.resize(rows);
  host_argmax_at<L, float>(rows, columns, 1, a.data(), r.largest.data());

  using Code = HostInstruction::Code;
  HostPointwise kernel;
  kernel.sizes = {static_cast<std::int64_t>(a.size())};
  kernel.inputs = {{Dtype::f32, {1}, 0}};
  kernel.code = {{Code::tanh, 1, 0},         {Code::erf, 2, 0},    {Code::multiply_add, 3, 0, 1, 2},
                 {Code::divide, 4, 3, 2},    {Code::round, 5, 4},  {Code::floor, 6, 3},
                 {Code::add, 7, 5, 6},       {Code::to_int, 8, 7}, {Code::multiply_i, 8, 8, 8},
                 {Code::to_real, 9, 8},      {Code::root, 9, 9},   {Code::select_less, 10, 0, 1, 9, 4},
                 {Code::subtract, 11, 10, 3}};
  kernel.registers = 12;
  kernel.outputs = {{Dtype::f32, 11}};
  r.pointwise.resize(a.size());
  void* arrays[] = {const_cast<float*>(a.data()), r.pointwise.data()};
  host_pointwise_at<L>(kernel, arrays, nullptr, 0, kernel.units());

  HostPointwise copy;  // of squares of rows, then of rows
  constexpr std::int64_t high = 37, wide = rows * columns / high;
  copy.inputs = {{Dtype::f32, {1, wide}, 0}};
  copy.sizes = {wide, high};
  copy.outputs = {{Dtype::f32, 0}};
  copy.registers = 1;
  r.turned.resize(a.size());
  void* turned[] = {const_cast<float*>(b.data()), r.turned.data()};
  host_pointwise_at<L>(copy, turned, nullptr, 0, copy.units());
  copy.inputs[0].strides = {columns, 1};
  copy.sizes = {rows, columns - 2};
  r.rows.resize(rows * (columns - 2));
  void* apart[] = {const_cast<float*>(b.data()), r.rows.data()};
  host_pointwise_at<L>(copy, apart, nullptr, 0, copy.units());

  GemmProblem problem;
  problem.m = rows, problem.n = rows, problem.k = columns;
  problem.a_row = columns, problem.a_col = 1, problem.b_row = rows, problem.b_col = 1;
  r.product.resize(rows * rows);
  gemm_at<L>(a.data(), b.data(), r.product.data(), problem);
  return r;
}

TEST(HostLevels, every_level_of_this_cpu_gives_the_bytes_of_the_baseline) {
  const auto expect = [want = run<HostLevel::baseline>()](const Results& got) {
    EXPECT_THAT(got.sums, ElementsAreArray(want.sums));
    EXPECT_THAT(got.columns, ElementsAreArray(want.columns));
    EXPECT_THAT(got.dots, ElementsAreArray(want.dots));
    EXPECT_THAT(got.scans, ElementsAreArray(want.scans));
    EXPECT_THAT(got.turned, ElementsAreArray(want.turned));
    EXPECT_THAT(got.rows, ElementsAreArray(want.rows));
    EXPECT_THAT(got.largest, ElementsAreArray(want.largest));
    EXPECT_EQ(std::memcmp(got.pointwise.data(), want.pointwise.data(), want.pointwise.size() * sizeof(float)), 0);
    // Sums of 333 products of at most 4, in another order.
    EXPECT_THAT(got.product, Pointwise(FloatNear(333 * 4 * 6e-8f * 18), want.product));
  };
  EXPECT_LE(static_cast<int>(host_level()), kHostLevels - 1);
#if SAMEBYTES_LEVELS > 1
  if (host_level() >= HostLevel::avx2) expect(run<HostLevel::avx2>());
  if (host_level() >= HostLevel::avx512) expect(run<HostLevel::avx512>());
#endif
}

}  // namespace
}  // namespace samebytes::detail
