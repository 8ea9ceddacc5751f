// What the host's part is worth: 500 small launches between two large products, off against on.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "graph/context.h"
#include "runtime/runtime.h"
#include "samebytes/samebytes.h"

namespace samebytes::testing {
namespace {

class Chain {
 public:
  explicit Chain(HostExecution mode)
      : engine_(std::make_unique<Engine>(EngineOptions{.host_execution = mode})), use_(*engine_) {
    eval({a_, tiny_});
  }
  bool runs_on_host() const { return engine_->context()->runtime->device().runs_host_functions(); }
  double seconds() {
    constexpr int kQueued = 4;
    const EngineScope use(*engine_);
    const auto start = std::chrono::steady_clock::now();
    for (int q = 0; q < kQueued; ++q) {
      const Array first = matmul(a_, a_);
      Array h = slice(slice(first, 0, 0, 8), 1, 0, 8);
      for (int i = 0; i < 100; ++i) {  // of five launches
        h = matmul(h, tiny_) * 0.25;
        h = h / (max(h, {}) + 1.0);
      }
      last_ = linear(first, a_, broadcast_to(sum(h, {}), {kSize}));
      last_.eval();
    }
    engine_->wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  std::vector<float> values() const { return last_.to_vector<float>(); }

 private:
  static constexpr std::int64_t kSize = 384;
  std::unique_ptr<Engine> engine_;
  EngineScope use_;
  Array a_ = uniform({kSize, kSize}), tiny_ = uniform({8, 8}), last_;
};

TEST(CoExecutionSpeed, five_hundred_small_launches_between_products_are_done_in_two_thirds_of_the_time) {
  constexpr double kLeast = 1.5;
  constexpr int kPairs = 15;
  Chain off(HostExecution::off), on(HostExecution::automatic);
  if (!on.runs_on_host()) GTEST_SKIP() << "the device does not run host functions";
  std::vector<double> faster;
  for (int pair = -2; pair < kPairs; ++pair) {
    const double without = off.seconds(), with = on.seconds();
    if (pair >= 0) faster.push_back(without / with);
  }
  EXPECT_EQ(on.values(), off.values());
  std::nth_element(faster.begin(), faster.begin() + kPairs / 2, faster.end());
  EXPECT_GE(faster[kPairs / 2], kLeast);
  RecordProperty("times_faster", std::to_string(faster[kPairs / 2]));
}

}  // namespace
}  // namespace samebytes::testing
