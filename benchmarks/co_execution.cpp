// What it is worth that the host does small launches itself, over the same bytes: 500 of them (tiny matrices, sums,
// maxima, scalars), each reading what the one before it made, between two large matrix products of which the second one
// reads their result. Eight such evaluations are queued before the engine is waited for. Host co-execution off and on
// in turns; the results are compared byte for byte.
//   build/bench_co_execution [--size 384] [--rounds 40] [--json]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"

namespace sb = samebytes;

namespace {

constexpr int kRounds = 71;  // of seven launches; with one before them and two after them 500
constexpr int kQueued = 8;   // evaluations that are timed together, as steps of a training loop are
constexpr std::int64_t kTiny = 8;
constexpr double kMilli = 1e-3;

struct Case {
  const char* name;
  sb::HostExecution mode;
  std::unique_ptr<sb::Engine> engine;
  sb::Array a, b, tiny, spread;
  std::vector<double> seconds;
  std::vector<float> result;
  sb::PlanReport plans;
};

void fill(Case& c, std::int64_t n) {
  const sb::EngineScope use(*c.engine);
  const auto made = [](const sb::Shape& shape, double scale) {
    sb::Array a = (sb::uniform(shape) - 0.5) * scale;
    a.eval();
    return a;
  };
  c.a = made({n, n}, 1);
  c.b = made({n, n}, 1);
  c.tiny = made({kTiny, kTiny}, 1);
  c.spread = made({kTiny * kTiny, n}, 1);
}

sb::Array run(const Case& c, std::int64_t n) {
  const sb::Array first = matmul(c.a, c.b);
  sb::Array h = matmul(slice(slice(first, 0, 0, kTiny), 1, 0, kTiny), c.tiny);
  for (int i = 0; i < kRounds; ++i) {
    h = matmul(h, c.tiny);
    h = h * 0.25 + sum(h, {1}, true) * 0.125;
    h = h / (max(h, {}) + 1.0);
  }
  h = matmul(h, c.tiny);
  const sb::Array bias = reshape(matmul(reshape(h, {1, kTiny * kTiny}), c.spread), {n});
  return linear(first, c.b, bias);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t n = 384;
  int rounds = 40;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json") json = true;
    if (word == "--size" && i + 1 < argc) n = std::atoll(argv[++i]);
    if (word == "--rounds" && i + 1 < argc) rounds = std::atoi(argv[++i]);
  }
  Case cases[] = {{"off", sb::HostExecution::off, {}, {}, {}, {}, {}, {}, {}, {}},
                  {"automatic", sb::HostExecution::automatic, {}, {}, {}, {}, {}, {}, {}, {}}};
  for (Case& c : cases) {
    c.engine = std::make_unique<sb::Engine>(sb::EngineOptions{.seed = 1, .host_execution = c.mode});
    fill(c, n);
  }
  for (int r = -2; r < rounds; ++r)
    for (Case& c : cases) {
      const sb::EngineScope use(*c.engine);
      const auto start = std::chrono::steady_clock::now();
      const sb::PlanReport before = c.engine->plans();
      sb::Array result;
      for (int q = 0; q < kQueued; ++q) {
        result = run(c, n);
        result.eval();
      }
      c.engine->wait();
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kQueued;
      const sb::PlanReport after = c.engine->plans();
      c.plans.launches = (after.launches - before.launches) / kQueued;
      c.plans.launches_on_host = (after.launches_on_host - before.launches_on_host) / kQueued;
      c.plans.host_runs = (after.host_runs - before.host_runs) / kQueued;
      if (r < 0) continue;  // plans, kernels and the constants of the cost model are made
      c.seconds.push_back(seconds);
      c.result = result.to_vector<float>();
    }
  const bool is_same =
      std::memcmp(cases[0].result.data(), cases[1].result.data(), cases[0].result.size() * sizeof(float)) == 0;
  std::vector<double> ratios;
  for (std::size_t r = 0; r < cases[0].seconds.size(); ++r) ratios.push_back(cases[0].seconds[r] / cases[1].seconds[r]);
  nlohmann::ordered_json out{{"size", n}, {"same_bytes", is_same}, {"faster", median(ratios)}};
  for (const Case& c : cases) {
    const double best = *std::min_element(c.seconds.begin(), c.seconds.end());
    out[c.name] = {{"median_ms", median(c.seconds) / kMilli},
                   {"best_ms", best / kMilli},
                   {"launches", c.plans.launches},
                   {"on_host", c.plans.launches_on_host},
                   {"host_runs", c.plans.host_runs}};
    if (!json)
      fmt::print("{:<10} median {:7.3f} ms  best {:7.3f} ms  {:4} launches, {:4} on the host in {} runs\n", c.name,
                 median(c.seconds) / kMilli, best / kMilli, c.plans.launches, c.plans.launches_on_host,
                 c.plans.host_runs);
  }
  if (json)
    fmt::print("{}\n", out.dump());
  else
    fmt::print("{0}x{0}: {1:.2f} times faster (median of {2} pairs), bytes {3}\n", n, median(ratios), rounds,
               is_same ? "the same" : "DIFFER");
  return is_same ? 0 : 1;
}
