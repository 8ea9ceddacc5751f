// What a replayed training step costs the host: building the graph, hashing it, binding its plan and enqueuing it.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"

namespace samebytes::testing {
namespace {

// What this thread worked: on a CPU device the launches of a step take cores from it before it is done enqueuing.
double thread_microseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

// Work for the allocator, caches and comparisons, as building a graph is, between the steps. Where it takes more than
// kNames, the machine is slower than those that the 150 microseconds are promised on, and the step may take longer by
// as much.
constexpr double kNames = 330;
// On one machine, within a minute, a round of the same program took 114 to 230 microseconds: the neighbours of a
// virtual machine take clock and caches from one round and leave the next alone. One undisturbed round is what is asked
// for. A neighbour that takes the caches through all rounds slows a step down more than those names, so what is
// measured then is no verdict: where the names themselves differ from round to round by more than kDisturbed, a step
// within twice the limit is skipped, and the reason says what was seen.
constexpr double kMost = 150;
constexpr int kMostRounds = 120;
constexpr double kDisturbed = 0.1;
double microseconds_of_a_thousand_names() {
  const double start = thread_microseconds();
  std::map<std::string, int> names;
  for (int i = 0; i < 1000; ++i)
    names.emplace("longer than a string holds itself " + std::to_string(i * 7919 % 1000), i);
  names.clear();
  return thread_microseconds() - start;
}

double quantile(std::vector<double>& values, double part) {
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size()));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}
double median(std::vector<double>& values) { return quantile(values, 0.5); }

TEST(HostTime, an_mlp_step_is_built_hashed_and_bound_in_150_microseconds) {
  Engine engine;
  nn::Sequential net(nn::Linear({.in = 784, .out = 512}), nn::Relu(), nn::Linear({.in = 512, .out = 256}), nn::Relu(),
                     nn::Linear({.in = 256, .out = 10}));
  optim::AdamW adam(net.parameters());
  const Array image = uniform({4, 784});
  const Array label = array(std::vector<std::int32_t>{1, 2, 3, 4}, {4});
  eval({image, label});
  double taken = std::numeric_limits<double>::infinity(), bound = taken;  // of the round that took least
  std::vector<double> names_of_rounds;
  for (int round = 0; round < kMostRounds && !(taken <= kMost && bound <= kMost); ++round) {
    std::vector<double> steps, names;
    const PlanReport before = engine.plans();
    for (int step = 0; step < 60; ++step) {
      engine.wait();  // the device's own threads leave the cores to the host
      if (step % 3 == 0) {
        names.push_back(microseconds_of_a_thousand_names());
        continue;
      }
      const double start = thread_microseconds();
      adam.step(cross_entropy(net(image), label));
      steps.push_back(thread_microseconds() - start);
    }
    const PlanReport after = engine.plans();
    names_of_rounds.push_back(median(names));
    const double slowness = std::max(1.0, names_of_rounds.back() / kNames);
    taken = std::min(taken, median(steps) / slowness);
    if (after.plans_replayed > before.plans_replayed)
      bound = std::min(bound, (after.bind_seconds - before.bind_seconds) * 1e6 / slowness /
                                  static_cast<double>(after.plans_replayed - before.plans_replayed));
  }
  RecordProperty("microseconds", std::to_string(taken));
  if (std::max(taken, bound) > kMost && std::max(taken, bound) <= 2 * kMost) {
    const double least = quantile(names_of_rounds, 0.1), most = quantile(names_of_rounds, 0.9);
    if (most > (1 + kDisturbed) * least)
      GTEST_SKIP() << "the machine is disturbed: the same work took " << least << " to " << most
                   << " us; the best round's step took " << taken << " us of " << kMost;
  }
  EXPECT_LE(taken, kMost) << "the median of the steps of the best round, launches enqueued as well";
  EXPECT_LE(bound, kMost);
  EXPECT_EQ(engine.transfers().bytes_copied, 0u);
}

}  // namespace
}  // namespace samebytes::testing
