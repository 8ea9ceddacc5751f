// Engines, graphs and random programs in several threads, as they are and under ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/random_programs.h"

namespace samebytes::testing {
namespace {

using programs::engine_with;
using programs::run_programs;

TEST(EngineThreads, eight_threads_open_one_each) {
  std::vector<std::thread> threads;
  std::atomic<int> sums{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&sums, i] {
      Engine engine;
      const EngineScope scope(engine);
      sums += static_cast<int>((array({1.0f}) + static_cast<double>(i)).value());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sums, 36);
}

TEST(EngineThreads, graphs_are_built_and_run_by_several_threads) {
  Engine engine;
  std::vector<double> totals(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &totals] {
      for (int i = 0; i < 20; ++i)
        totals[static_cast<std::size_t>(t)] += sum(array({1, 2, 3}) * static_cast<double>(t + i)).value();
    });
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 4; ++t) EXPECT_EQ(totals[static_cast<std::size_t>(t)], 6.0 * (20 * t + 190));
}

// A thread drops the last handle of evaluated chains, whose ops are kept for gradients, while others write to a leaf,
// which looks through all that are kept.
TEST(EngineThreads, a_graph_may_be_dropped_while_other_threads_write_to_leaves) {
  Engine engine;
  const nn::Parameter weight(ones({2}).wait());
  std::atomic<bool> is_over{false};
  std::vector<std::thread> writers;
  for (int t = 0; t < 2; ++t) {
    writers.emplace_back([&] {
      Array leaf = zeros({2}).wait();
      while (!is_over) leaf.mutable_host<float>()[0] += 1;
    });
  }
  for (int i = 0; i < 100; ++i) {
    std::vector<Array> parts;
    for (int j = 0; j < 10; ++j) {
      std::vector<Array> inner;
      for (int k = 0; k < 60; ++k) inner.push_back(weight + static_cast<double>(k));
      parts.push_back(concat(inner, 0));
    }
    eval(parts);
    const Array all = concat(parts, 0).eval();
    parts.clear();  // now `all` alone holds them, and they what they were made of
  }
  is_over = true;
  for (std::thread& writer : writers) writer.join();
}

TEST(EngineThreads, random_programs_of_threads_on_one_engine_and_on_their_own_give_the_same) {
  const auto shared = engine_with(HostExecution::always, false), own = engine_with(HostExecution::always, false);
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] { run_programs(t < 3 ? *shared : *own, 10000 + 1000 * t, 100); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace samebytes::testing
