// The two measures of a device: multiply-adds (kernel: cl/*/peak.cl) and the bandwidth of c = a + b (a pointwise
// kernel).
#include "samebytes/peak.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "graph/launch.h"
#include "graph/op.h"
#include "samebytes/array.h"
#include "samebytes/autograd.h"
#include "samebytes/engine.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace {

using detail::Hasher;
using detail::Launch;

constexpr int kRowsPerCpuCore = 8;
constexpr int kRowsPerGpuCore = 32;
constexpr int kPeakColumns = 64;        // PEAK_COLUMNS of peak.cl
constexpr double kFmasPerRound = 1024;  // PEAK_FMAS of peak.cl
constexpr int kInFlight = 8;            // PoCL's threads may share a core for one launch; they do not for many
constexpr int kMostRuns = 60;           // short and many, so that the best one meets no other process
constexpr int kRunsInVain = 12;         // that were no faster than the best one before by
constexpr double kFaster = 1.005;       // this: more would not be, either
constexpr double kMostSeconds = 2;      // a slow device gets fewer runs
constexpr double kSecondsPerRun = 0.004;
constexpr int kStreamRuns = 10;
constexpr std::int64_t kStreamElements = std::int64_t{1} << 24;

class PeakFma final : public detail::Op {
 public:
  explicit PeakFma(int rounds) : rounds_(rounds) {}
  std::string_view name() const override { return "peak_fma"; }
  void hash(Hasher& hasher) const override { hasher.add(static_cast<std::uint64_t>(rounds_)); }
  detail::Cost cost(std::span<const Shape>, std::span<const Shape> dst) const override {
    return {.flops = 2 * kFmasPerRound * rounds_ * static_cast<double>(dst[0][0]),
            .bytes = 4.0 * static_cast<double>(dst[0].size())};
  }
  void launch(Launch& run) const override {
    // The chains go to their fixed point 1 and never to a slow denormal or infinite value.
    run.kernel("peak_fma").args(run.dst(), rounds_, 0.5, 0.5).over_rows(run.dst_shape()[0], kPeakColumns);
  }

 private:
  int rounds_;
};

template <class MakeArray>
double seconds_of(MakeArray make_array) {
  std::vector<Array> results;
  results.reserve(kInFlight);
  for (int i = 0; i < kInFlight; ++i) results.push_back(make_array());
  Engine::current().wait();
  const auto start = std::chrono::steady_clock::now();
  eval(results);
  Engine::current().wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double measure_gflops(const DeviceInfo& info) {
  const std::int64_t rows =
      std::max(1, info.cores) * (info.personality == Personality::cpu ? kRowsPerCpuCore : kRowsPerGpuCore);
  const auto best_of = [&](int runs, int rounds) {
    const auto launch = [&] {
      return detail::make_array(detail::make_op<PeakFma>(rounds), {rows, kPeakColumns}, f32, {});
    };
    double best = seconds_of(launch), sum = best;
    for (int i = 1, in_vain = 0; i < runs && in_vain < kRunsInVain && sum < kMostSeconds; ++i) {
      const double seconds = seconds_of(launch);
      in_vain = seconds * kFaster < best ? 0 : in_vain + 1;
      best = std::min(best, seconds);
      sum += seconds;
    }
    return best;
  };
  int rounds = 1;
  best_of(1, rounds);  // builds the kernel, which is no part of its time
  while (rounds < (1 << 24) && best_of(3, rounds) < kSecondsPerRun) rounds *= 2;
  const double best = best_of(kMostRuns, rounds);
  return 2 * kFmasPerRound * rounds * static_cast<double>(rows) * kInFlight / best * 1e-9;
}

double measure_bandwidth(const Engine& engine) {
  const DeviceInfo& info = engine.device();
  const std::size_t free =
      engine.memory().limit_bytes - std::min(engine.memory().limit_bytes, engine.memory().live_bytes);
  const std::size_t largest = std::min(info.max_allocation_bytes, free / 4);
  const auto n = std::clamp<std::int64_t>(static_cast<std::int64_t>(largest / 4), 1, kStreamElements);
  const Array a = ones({n}).wait(), b = ones({n}).wait();
  double best = 0;
  for (int i = 0; i <= kStreamRuns; ++i) {
    // One result at a time keeps the memory small; the launch is long enough to hide a wait.
    const Array c = a + b;
    const auto start = std::chrono::steady_clock::now();
    c.wait();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (i > 0) best = std::max(best, 12.0 * static_cast<double>(n) / seconds * 1e-9);
  }
  return best;
}

}  // namespace

DevicePeak measure_peak() {
  const NoGrad no_grad;
  Engine& engine = Engine::current();
  return {.gflops = measure_gflops(engine.device()), .gigabytes_per_second = measure_bandwidth(engine)};
}

}  // namespace samebytes
