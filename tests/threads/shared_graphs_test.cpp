// Graphs in several threads: engines whose graphs share ops, and one engine that several threads build for,
// differentiate and evaluate at once. The values are right anyway; what ThreadSanitizer says of these is the test.
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"

namespace samebytes::testing {
namespace {

class SharedGraphs : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(SharedGraphs);

// Both at once, as often as said.
void side_by_side(int rounds, const std::function<void(int)>& first, const std::function<void(int)>& second) {
  std::barrier start(2);
  const auto run = [&](const std::function<void(int)>& part) {
    for (int round = 0; round < rounds; ++round) {
      start.arrive_and_wait();
      part(round);
    }
  };
  std::thread other([&] { run(second); });
  run(first);
  other.join();
}

Array vector_of(float first) { return array({first, 2, 3, 4}); }

TEST_P(SharedGraphs, engines_in_threads_of_their_own_share_ops) {
  constexpr int kEngines = 3, kRounds = 4;
  std::vector<std::unique_ptr<Engine>> engines;
  for (int i = 0; i < kEngines; ++i) engines.push_back(make_engine(GetParam()));
  std::vector<std::vector<float>> came(kEngines);
  std::barrier start(kEngines);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kEngines; ++i)
    threads.emplace_back([&, i] {
      const EngineScope scope(*engines[i]);
      for (int round = 0; round < kRounds; ++round) {
        start.arrive_and_wait();
        const Array x = array({1, -2, 3, -4}, {2, 2}), w = array({0.5f, 1, -1, 2}, {2, 2});
        const Array y = softmax(relu(matmul(x, w)) + tanh(x)) * dropout(x, 0.5, {.seed = 1, .counter = 2});
        const std::vector<Array> wrt{w};
        const Array dw = gradients(sum(log_softmax(y) * x), wrt)[0];
        came[i] = dw.to_vector<float>();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(came[1], came[0]);
  EXPECT_EQ(came[2], came[0]);
}

TEST_P(SharedGraphs, one_thread_differentiates_what_another_evaluates) {
  constexpr int kRounds = 20;
  std::vector<Array> middles, inputs;
  for (int round = 0; round < kRounds; ++round) {
    Array h = vector_of(1);
    for (int i = 0; i < 16; ++i) h = reshape(h, {2, 2}) * 0.5 + 1.0;
    middles.push_back(reshape(h, {4}));
    inputs.push_back(vector_of(1));
  }
  Engine& shared = engine();
  side_by_side(
      kRounds,
      [&](int round) {
        const auto at = static_cast<std::size_t>(round);
        const std::vector<Array> wrt{inputs[at]};
        const Array dv = gradients(sum(middles[at] * inputs[at]), wrt)[0];
        EXPECT_EQ(dv.to_vector<float>(), middles[at].to_vector<float>());
      },
      [&](int round) {
        const EngineScope scope(shared);
        middles[static_cast<std::size_t>(round)].eval();
      });
}

TEST_P(SharedGraphs, threads_call_one_network_at_once_from_its_first_call_on) {
  constexpr int kRounds = 6;
  nn::Sequential net(nn::Conv2d({.in = 1, .out = 2, .kernel = 3}), nn::BatchNorm2d({.features = 2}), nn::Relu(),
                     nn::Flatten(), nn::Linear({.in = 2 * 6 * 6, .out = 3}));
  net.eval();
  Engine& shared = engine();
  const auto call = [&](int round) {
    const EngineScope scope(shared);
    const NoGrad no_grad;
    return net(full({2, 8, 8, 1}, round)).to_vector<float>();
  };
  std::array<std::vector<std::vector<float>>, 2> came;
  side_by_side(
      kRounds, [&](int round) { came[0].push_back(call(round)); }, [&](int round) { came[1].push_back(call(round)); });
  EXPECT_EQ(came[0], came[1]);
  for (int round = 0; round < kRounds; ++round) EXPECT_EQ(came[0][static_cast<std::size_t>(round)], call(round));
}

TEST_P(SharedGraphs, one_thread_reads_a_cell_that_another_one_updates) {
  constexpr int kRounds = 20;
  const Array w = cell(vector_of(0), "w");
  w.eval();
  Engine& shared = engine();
  side_by_side(
      kRounds, [&](int) { assign(w, w + 1.0); },
      [&](int) {
        const EngineScope scope(shared);
        try {
          const std::vector<float> values = (w * 1.0).to_vector<float>();
          EXPECT_EQ(values[1], values[0] + 2) << "half of an update was seen";
        } catch (const ArgumentError&) {  // it was overwritten between the call and the evaluation
        }
      });
  EXPECT_EQ(w.to_vector<float>()[0], kRounds);
}

TEST_P(SharedGraphs, threads_build_on_one_graph_that_nobody_has_evaluated) {
  constexpr int kRounds = 8;
  std::vector<Array> bases, views;
  for (int round = 0; round < kRounds; ++round) {
    bases.push_back(vector_of(1) * 2.0);
    views.push_back(reshape(bases.back(), {2, 2}));
  }
  Engine& shared = engine();
  std::array<float, 2> sums{};
  side_by_side(
      kRounds,
      [&](int round) {
        const Array &base = bases[static_cast<std::size_t>(round)], &view = views[static_cast<std::size_t>(round)];
        const Array wide = conv1d(reshape(relu(base), {1, 4, 1}), ones({1, 1, 1}));
        const Array all =
            relu(matmul(view, ones({2, 2}))) + softmax(transpose(view)) * 0.0 + slice(view, 0, 0, 1) * 0.0;
        sums[0] = static_cast<float>(sum(wide).value() + sum(all).value());
      },
      [&](int round) {
        const EngineScope scope(shared);
        bases[static_cast<std::size_t>(round)].eval();
        sums[1] = static_cast<float>(sum(transpose(views[static_cast<std::size_t>(round)])).value());
      });
  EXPECT_EQ(sums[0], 60);
  EXPECT_EQ(sums[1], 20);
}

}  // namespace
}  // namespace samebytes::testing
