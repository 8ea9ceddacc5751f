// How a row is checked and timed.
#include "kernels/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <limits>
#include <span>
#include <thread>

#include <unistd.h>

#include "samebytes/autograd.h"
#include "samebytes/engine.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::benchmarks {
namespace {

constexpr std::int64_t kSamples = 101;    // elements compared with `expected`
constexpr double kResultBytes = 8 << 20;  // results of one evaluation, so that they stay in the cache as peers' do
constexpr int kMostInFlight = 16;         // launches of one evaluation
constexpr int kFewestRounds = 3, kMostRounds = 9;
constexpr double kSecondsPerRound = 0.03;
constexpr double kSmokeSeconds = 0.02;     // below it a row is checked and run once, nothing more
constexpr const char* kStream = "stream";  // the bound of what is bound by bandwidth, as a side of its own
constexpr double kEpsilon = std::numeric_limits<float>::epsilon();

struct Side {
  std::string name;
  std::function<void(int)> run;      // that many times, and waits
  int count = 1;                     // in a round
  std::vector<double> seconds = {};  // of one, by round
};

double seconds_of(const Side& side, int count) {
  const auto start = std::chrono::steady_clock::now();
  side.run(count);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// What all processes of the machine have used, in seconds; 0 where the system does not say.
double machine_cpu_seconds() {
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0;
  if (!(file >> name >> user >> nice >> system)) return 0;
  return (user + nice + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Waits until no thread of this process takes a core any more: OpenBLAS's and OpenMP's threads go on spinning for a
// while after a call, and would slow whoever comes next.
void wait_until_quiet() {
  constexpr double kStep = 0.002, kIdle = 0.05, kMost = 1.0;
  for (double waited = 0; waited < kMost; waited += kStep) {
    const double before = cpu_seconds();
    std::this_thread::sleep_for(std::chrono::duration<double>(kStep));
    if (cpu_seconds() - before < kIdle * kStep) return;
  }
  throw Error("bench_kernels: threads of a library still spin after a second of waiting");
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

double tolerance(const Row& row, double want) {
  const double root = std::sqrt(static_cast<double>(row.length));
  return 4 * kEpsilon * (4 + root) * (row.largest * (1 + root / 3) + std::abs(want));
}

void compare(const Entry& entry, const Row& row, const std::string& with, std::int64_t i, double came, double want) {
  if (std::abs(came - want) <= tolerance(row, want)) return;
  throw Error(fmt::format("{}/{}: at {} came {}, {} has {}, tolerance {}", entry.family, entry.name, i, came, with,
                          want, tolerance(row, want)));
}

void check(const Entry& entry, const Row& row) {
  if (row.check) {
    if (const std::string fault = row.check(); !fault.empty())
      throw Error(entry.family + "/" + entry.name + ": " + fault);
    return;
  }
  const Array result = row.make();
  if (result.dtype() != f32) return;
  const std::vector<float> ours = host(result);
  const auto size = static_cast<std::int64_t>(ours.size());
  if (row.expected)
    for (std::int64_t k = 0; k < kSamples; ++k) {
      const std::int64_t i = k * 7919 * 104729 % size;  // primes: spread over all axes
      compare(entry, row, "the reference", i, ours[static_cast<std::size_t>(i)], row.expected(i));
    }
  for (const Peer& peer : row.peers) {
    peer.run();
    const std::vector<float> theirs = peer.result();
    if (theirs.size() != ours.size())
      throw Error(fmt::format("{}/{}: {} elements, {} has {}", entry.family, entry.name, ours.size(), peer.name,
                              theirs.size()));
    for (std::size_t i = 0; i < ours.size(); ++i)
      compare(entry, row, peer.name, static_cast<std::int64_t>(i), ours[i], theirs[i]);
  }
}

Side our_side(const Row& row) {
  if (row.step)
    return {"ours", [step = row.step](int count) {
              for (int i = 0; i < count; ++i) step();
              Engine::current().wait();
            }};
  // Pointwise nodes of one evaluation would be fused into one launch, so what is bound by bandwidth comes one by one.
  const double result_bytes = bytes(row.make());
  const int batch =
      is_bandwidth(row.bound) ? 1 : std::clamp(static_cast<int>(kResultBytes / result_bytes), 1, kMostInFlight);
  return {"ours",
          [make = row.make, batch](int count) {
            for (int done = 0; done < count; done += batch) {
              std::vector<Array> results;
              for (int i = 0; i < std::min(batch, count - done); ++i) results.push_back(make());
              eval(results);
            }
            Engine::current().wait();
          },
          batch};
}

// A multiple of what it was, so that our evaluations are full and share one plan.
void choose_count(Side& side, double seconds) {
  side.run(side.count);
  const double once = std::min(seconds_of(side, side.count), seconds_of(side, side.count));
  side.count *= std::max(1, static_cast<int>(seconds / once));
}

}  // namespace

Result run_row(const Entry& entry, const Machine& machine, double seconds) {
  Row row = entry.make();
  std::erase_if(row.peers, [](const Peer& peer) { return !peer.run; });
  check(entry, row);

  std::vector<Side> sides{our_side(row)};
  for (const Peer& peer : row.peers)
    sides.push_back({peer.name, [run = peer.run](int count) {
                       for (int i = 0; i < count; ++i) run();
                     }});
  // How much memory gives at the moment changes by half within a minute here, so the bound is taken in turns too.
  Stream stream{};
  if (is_bandwidth(row.bound)) {
    stream = native_stream(row.bound == Bound::bandwidth_in_place);
    sides.push_back({kStream, [run = stream.run](int count) {
                       for (int i = 0; i < count; ++i) run();
                     }});
  }
  const int most = std::clamp(static_cast<int>(seconds / kSecondsPerRound), 1, kMostRounds);
  double longest = 0;
  for (Side& side : sides) {
    if (seconds < kSmokeSeconds) break;
    wait_until_quiet();
    choose_count(side, seconds / most);
    longest = std::max(longest, seconds_of(side, side.count));
  }
  const int rounds =
      longest > 0 ? std::clamp(static_cast<int>(seconds / longest) | 1, std::min(kFewestRounds, most), most) : 1;
  const double all_before = machine_cpu_seconds(), own_before = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < sides.size(); ++i) {
      Side& side = sides[round % 2 == 0 ? i : sides.size() - 1 - i];  // so that nobody always follows the same one
      if (longest > 0) wait_until_quiet();
      side.seconds.push_back(seconds_of(side, side.count) / side.count);
    }
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double others = machine_cpu_seconds() - all_before - (cpu_seconds() - own_before);

  Result result;
  result.family = entry.family;
  result.name = entry.name;
  result.others = std::max(0.0, others / wall);
  const Side& ours = sides.front();
  result.unit = is_bandwidth(row.bound) ? "GB/s" : "GFLOP/s";
  result.seconds = median(ours.seconds);
  result.ours = row.work / result.seconds * 1e-9;
  result.share = result.ours / machine.of(row.bound);
  if (is_bandwidth(row.bound)) {
    std::vector<double> shares;
    for (std::size_t i = 0; i < ours.seconds.size(); ++i)
      shares.push_back(row.work / ours.seconds[i] * sides.back().seconds[i] / stream.bytes);
    result.share = median(shares);
  }
  const auto [fastest, slowest] = std::minmax_element(ours.seconds.begin(), ours.seconds.end());
  result.spread = (*slowest - *fastest) / result.seconds;
  const Side* best = nullptr;
  for (const Side& side : std::span<const Side>(sides).subspan(1)) {
    if (side.name == kStream) continue;
    const double speed = row.work / median(side.seconds) * 1e-9;
    (side.name == "eigen" ? result.eigen : side.name == "openblas" ? result.openblas : result.onednn) = speed;
    if (!best || median(side.seconds) < median(best->seconds)) best = &side;
  }
  if (best) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < ours.seconds.size(); ++i) ratios.push_back(best->seconds[i] / ours.seconds[i]);
    result.ratio = median(ratios);
  }
  return result;
}

Array values(const Shape& shape) { return uniform(shape, -1, 1).wait(); }
double bytes(const Array& a) { return 4.0 * static_cast<double>(a.size()); }
std::vector<float> host(const Array& a) { return a.to_vector<float>(); }

Array pull_back(const Array& y, const Array& dy, const Array& wrt) {
  // A scalar whose gradient is dy as it lies; it is never evaluated.
  const CustomOp scalar{
      .name = "bench_seed",
      .entry = "bench_seed",
      .source = "__kernel void bench_seed(ARRAY(const real, y), ARRAY(real, dst), const int n) {}",
      .gradient = [dy](const Array&, std::span<const Array>, const Array&) { return std::vector<Array>{dy}; }};
  const Array loss = custom_op(scalar, std::span<const Array>(&y, 1), {1});
  return gradients(loss, std::span<const Array>(&wrt, 1))[0];
}

}  // namespace samebytes::benchmarks
