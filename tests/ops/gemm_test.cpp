// The launches of a matrix product beneath matmul and linear: every path of the kernels (rows read in place and packed,
// parts of tiles, splits of k, few rows, few columns) with every epilogue, against double.
#include "ops/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "graph/op.h"
#include "reference/matmul.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class GemmTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(GemmTest);

// a [M, K] x the transpose of b [N, K] + bias [N] + residual [M, N], then ReLU: what the planner may ask of linear.
class ProductAndMore final : public detail::Op {
 public:
  ProductAndMore(bool bias, bool residual, bool relu) : bias_(bias), residual_(residual), relu_(relu) {}
  std::string_view name() const override { return "product_and_more"; }
  void hash(detail::Hasher& hasher) const override {
    hasher.add(std::uint64_t{bias_} + 2 * std::uint64_t{residual_} + 4 * std::uint64_t{relu_});
  }
  void launch(detail::Launch& run) const override {
    const std::int64_t m = run.src_shape(0)[0], n = run.src_shape(1)[0], k = run.src_shape(0)[1];
    run.set_epilogue({residual_ ? run.src(3) : detail::Launch::none(), relu_});
    detail::launch_gemm(run, run.src(0), run.src(1), bias_ ? run.src(2) : detail::Launch::none(), run.dst(),
                        {.m = m, .n = n, .k = k, .a_row = k, .a_col = 1, .b_row = 1, .b_col = k}, run.dst_dtype());
  }

 private:
  bool bias_, residual_, relu_;
};

void check_epilogues(const std::vector<Dtype>& dtypes) {
  struct Size {
    std::int64_t m, n, k;
  };
  for (const Dtype dtype : dtypes) {
    for (const Size s : {Size{47, 75, 300}, Size{40, 20, 70}, Size{46, 70, 1024}, Size{45, 37, 2100}, Size{6, 37, 65},
                         Size{39, 5, 10}}) {
      const auto a = random_values(s.m * s.k, 1), b = random_values(s.n * s.k, 2), bias = random_values(s.n, 3),
                 residual = random_values(s.m * s.n, 4);
      const std::vector<Array> inputs{real_array(a, {s.m, s.k}, dtype), real_array(b, {s.n, s.k}, dtype),
                                      real_array(bias, {s.n}, dtype), real_array(residual, {s.m, s.n}, dtype)};
      const auto product = reference_matmul(a, {s.m, s.k}, reference_transpose(b, s.n, s.k), {s.k, s.n});
      for (int which = 0; which < 8; ++which) {
        const bool has_bias = which & 1, has_residual = which & 2, relu = which & 4;
        auto want = product;
        for (std::size_t i = 0; i < want.size(); ++i) {
          if (has_bias) want[i] += bias[i % bias.size()];
          if (has_residual) want[i] += residual[i];
          if (relu) want[i] = std::max(0.0, want[i]);
        }
        const Array got = detail::make_array(detail::make_op<ProductAndMore>(has_bias, has_residual, relu), {s.m, s.n},
                                             dtype, inputs);
        EXPECT_TRUE(all_close(got, want, sum_tolerance(dtype, s.k)))
            << s.m << " x " << s.n << " x " << s.k << ", epilogue " << which;
      }
    }
  }
}

TEST_P(GemmTest, adds_bias_and_residual_and_keeps_what_is_positive) { check_epilogues(real_dtypes()); }

// Operands as they lie and transposed: few rows over columns in place, whole tiles that pack while they compute, parts
// of tiles on both sides, sums of one and of several blocks.
TEST_P(GemmTest, every_layout_gives_the_same_product) {
  struct Size {
    std::int64_t m, n, k;
  };
  for (const Size s : {Size{10, 70, 64}, Size{13, 33, 40}, Size{43, 65, 385}}) {
    const auto a = random_values(s.m * s.k, 1), b = random_values(s.k * s.n, 2);
    const auto want = reference_matmul(a, {s.m, s.k}, b, {s.k, s.n});
    const auto a_turned = reference_transpose(a, s.m, s.k), b_turned = reference_transpose(b, s.k, s.n);
    for (const Dtype dtype : real_dtypes()) {
      for (int layout = 0; layout < 4; ++layout) {
        const Array left =
            layout & 1 ? transpose(real_array(a_turned, {s.k, s.m}, dtype)) : real_array(a, {s.m, s.k}, dtype);
        const Array right =
            layout & 2 ? transpose(real_array(b_turned, {s.n, s.k}, dtype)) : real_array(b, {s.k, s.n}, dtype);
        EXPECT_TRUE(all_close(matmul(left, right), want, sum_tolerance(dtype, s.k)))
            << s.m << " x " << s.n << " x " << s.k << ", layout " << layout;
      }
    }
  }
}

TEST_P(GemmTest, other_providers_do_the_same) {
  EngineOptions options;
  options.gemm = GemmProvider::eigen;
  const auto own = make_engine(GetParam(), options);
  const EngineScope scope(*own);
  check_epilogues({f32});
}

}  // namespace
}  // namespace samebytes::testing
