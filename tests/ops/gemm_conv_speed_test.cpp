// Speed of matrix products and convolutions on the CPU device, against Eigen in the same run. The competitors take
// turns and the best round of each counts, so that other load on the machine hits both.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "ops/gemm.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/process.h"

namespace samebytes::testing {
namespace {

constexpr int kRounds = 12;
constexpr int kInFlight = 8;  // PoCL's threads may share a core for one launch; they do not for many
constexpr double kProductFlops = 2.0 * 1024 * 1024 * 1024;

double seconds_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Evaluates fresh nodes of one op in one run and waits.
void evaluate(const std::function<Array()>& make) {
  std::vector<Array> results;
  for (int i = 0; i < kInFlight; ++i) results.push_back(make());
  eval(results);
  Engine::current().wait();
}

class GemmConvSpeed : public ::testing::Test {
 private:
  Engine& engine_ = engine_of({});
  EngineScope scope_{engine_};

 protected:
  void SetUp() override {
    if (is_sanitized()) GTEST_SKIP() << "a sanitizer is linked in";
    if (engine_.device().type != "cpu") GTEST_SKIP() << engine_.device().name << " is no CPU";
  }
  // The least seconds of one launch of each, taken in turns.
  std::vector<double> best(const std::vector<std::function<void()>>& runs) {
    for (const auto& run : runs) run();
    std::vector<double> seconds(runs.size(), 1e9);
    for (int round = 0; round < kRounds; ++round)
      for (std::size_t i = 0; i < runs.size(); ++i) seconds[i] = std::min(seconds[i], seconds_of(runs[i]) / kInFlight);
    return seconds;
  }
  Array a_ = uniform({1024, 1024}, -1, 1).wait(), b_ = uniform({1024, 1024}, -1, 1).wait();
};

TEST_F(GemmConvSpeed, a_product_of_1024_takes_at_most_1_6_times_as_long_as_eigens) {
  const auto a = a_.to_vector<float>(), b = b_.to_vector<float>();
  std::vector<float> c(a.size());
  detail::GemmProblem p;
  p.m = p.n = p.k = p.a_row = p.b_row = 1024;
  p.a_col = p.b_col = 1;
  const auto seconds = best({[&] { evaluate([&] { return matmul(a_, b_); }); },
                             [&] {
                               for (int i = 0; i < kInFlight; ++i) detail::gemm_native(a.data(), b.data(), c.data(), p);
                             }});
  RecordProperty("gflops", std::to_string(kProductFlops / seconds[0] * 1e-9));
  RecordProperty("eigen_gflops", std::to_string(kProductFlops / seconds[1] * 1e-9));
  EXPECT_LE(seconds[0], 1.6 * seconds[1]);
}

TEST_F(GemmConvSpeed, each_pass_of_a_convolution_of_32_to_64_channels_has_half_the_rate_of_a_product) {
  struct Size {
    std::int64_t pixels, in, out;
  };
  for (const Size& s : {Size{28, 32, 64}, Size{14, 32, 64}, Size{14, 64, 64}, Size{8, 32, 32}}) {
    const Conv2dOptions options{.pad_h = 1, .pad_w = 1};
    const Array src = uniform({64, s.pixels, s.pixels, s.in}, -1, 1).wait(),
                weight = uniform({3, 3, s.in, s.out}, -1, 1).wait();
    const Array dy = uniform({64, s.pixels, s.pixels, s.out}, -1, 1).wait();
    const auto gradient = [&](const Array& wrt) {
      return gradients(sum(conv2d(src, weight, {}, options) * dy), std::span<const Array>(&wrt, 1))[0];
    };
    const auto seconds =
        best({[&] { evaluate([&] { return matmul(a_, b_); }); },
              [&] { evaluate([&] { return conv2d(src, weight, {}, options); }); },
              [&] { evaluate([&] { return gradient(src); }); }, [&] { evaluate([&] { return gradient(weight); }); }});
    const double flops = 2.0 * static_cast<double>(dy.size() * 9 * s.in), rate = kProductFlops / seconds[0];
    const char* passes[] = {"forward", "input gradient", "weight gradient"};
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_GE(flops / seconds[i + 1], rate / 2)
          << passes[i] << " of " << s.pixels << " x " << s.pixels << ", " << s.in << " to " << s.out
          << " channels; the product has " << rate * 1e-9 << " GFLOP/s";
  }
}

}  // namespace
}  // namespace samebytes::testing
