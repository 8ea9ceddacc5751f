// Every kernel against its bound and beside the libraries of the host: GFLOP/s over the measured peak of multiply-adds,
// or the bytes that it must read and write once over the bandwidth of c = a + b in a loop of the host that takes turns
// with it (of a = a + b for kernels that write over what they read), and the ratio to the fastest of Eigen, OpenBLAS
// and oneDNN.
//   build/bench_kernels                                       everything
//   build/bench_kernels --benchmark_filter=conv2d             rows whose family/name matches
//   build/bench_kernels --benchmark_format=json               with all counters; the table then goes to stderr
//   build/bench_kernels --benchmark_min_time=0.05             seconds a side and row, 0.25 unless given
// A row first compares results (with the peers', or a sample with a double reference), then times.
//
// "others" is the number of cores that other processes took while a row was timed. Beyond about 0.1 its figures say
// little: whoever happens to run then loses, so the ratio is hit too.
//
// How fairness is reached. All sides have the same number of threads, that of the device's cores; ours are pinned, as
// those of the command are, since two that wake on one core run at half the speed. The sides of a row take turns, in
// reversed order every other round: each runs for equal times, and the ratio is the median of the rounds' ratios, so
// other load and clock changes hit all alike. Ours is enqueued several launches deep, as in training; peers are called
// in a loop. Threads of OpenBLAS and OpenMP spin after a call, which keeps them on their cores, helps their own next
// call and would take a core from whoever comes next: so they may (no policy is forced on them), but before each turn
// the process waits until its CPU time stands still. Peers keep their results in one buffer; ours rotate through few
// enough to stay in cache. oneDNN's convolutions use the layouts it likes best, reordered outside of the timing;
// products take plain matrices on all sides and pack within their time.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/row.h"
#include "samebytes/device.h"
#include "samebytes/engine.h"
#include "samebytes/peak.h"

namespace sb = samebytes;

namespace {

using sb::benchmarks::Entry;
using sb::benchmarks::Result;

constexpr double kSecondsPerSide = 0.25;

std::string cell(double value, const char* suffix = "", int decimals = 1) {
  return value > 0 ? fmt::format("{:.{}f}{}", value, decimals, suffix) : "";
}

std::string heading() {
  return fmt::format("{:<56} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7} {:>6} {:>7}", "", "us", "ours", "Eigen",
                     "OpenBLAS", "oneDNN", "", "of bound", "ratio", "+-", "others");
}

std::string line(const Result& r) {
  return fmt::format("{:<56} {:>10.1f} {:>8.1f} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7} {:>6} {:>7}",
                     r.family + "/" + r.name, r.seconds * 1e6, r.ours, cell(r.eigen), cell(r.openblas), cell(r.onednn),
                     r.unit, cell(100 * r.share, " %", 0), cell(r.ratio, "", 2), fmt::format("{:.0f} %", 50 * r.spread),
                     fmt::format("{:.2f}", r.others));
}

// Means and the worst of each family, in the order of the rows.
void print_families(const std::vector<Result>& results, std::FILE* file) {
  fmt::print(file, "\n{:<12} {:>5} {:>9} {:>9}  {:<50} {:>9} {:>9}  {}\n", "family", "rows", "of bound", "least", "",
             "ratio", "least", "(ratios: geometric means)");
  std::vector<std::string> families;
  for (const Result& r : results)
    if (std::find(families.begin(), families.end(), r.family) == families.end()) families.push_back(r.family);
  for (const std::string& family : families) {
    double shares = 0, logs = 0;
    int rows = 0, compared = 0;
    const Result *least_share = nullptr, *least_ratio = nullptr;
    for (const Result& r : results) {
      if (r.family != family) continue;
      ++rows;
      shares += r.share;
      if (!least_share || r.share < least_share->share) least_share = &r;
      if (r.ratio <= 0) continue;
      ++compared;
      logs += std::log(r.ratio);
      if (!least_ratio || r.ratio < least_ratio->ratio) least_ratio = &r;
    }
    fmt::print(file, "{:<12} {:>5} {:>7.0f} % {:>7.0f} %  {:<50} {:>9} {:>9}  {}\n", family, rows, 100 * shares / rows,
               100 * least_share->share, least_share->name,
               compared ? fmt::format("{:.2f}", std::exp(logs / compared)) : "",
               least_ratio ? fmt::format("{:.2f}", least_ratio->ratio) : "", least_ratio ? least_ratio->name : "");
  }
}

// The table, row by row as they come.
class Table final : public benchmark::BenchmarkReporter {
 public:
  explicit Table(const std::vector<Result>& results) : results_(results) {}
  bool ReportContext(const Context&) override {
    fmt::print("{}\n", heading());
    return true;
  }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (run.error_occurred) fmt::print("{}\n", run.error_message);
    for (; printed_ < results_.size(); ++printed_) fmt::print("{}\n", line(results_[printed_]));
    std::fflush(stdout);
  }

 private:
  const std::vector<Result>& results_;
  std::size_t printed_ = 0;
};

// The value of an option of Google Benchmark, which are not public; "" where it is not given.
std::string option(int argc, char** argv, const std::string& name) {
  const std::string start = "--benchmark_" + name + "=";
  for (int i = 1; i < argc; ++i)
    if (std::strncmp(argv[i], start.c_str(), start.size()) == 0) return argv[i] + start.size();
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  sb::pin_threads();
  const std::string min_time = option(argc, argv, "min_time"), format = option(argc, argv, "format");
  const double seconds = min_time.empty() ? kSecondsPerSide : std::strtod(min_time.c_str(), nullptr);
  const bool is_table = format.empty() || format == "console";
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;

  sb::Engine engine;
  sb::benchmarks::set_peer_threads(engine.device().cores);
  const sb::DevicePeak peak = sb::measure_peak();
  const double native = sb::benchmarks::native_stream_bandwidth();
  const double in_place = sb::benchmarks::native_in_place_bandwidth();
  const sb::benchmarks::Machine machine{peak.gflops, std::max(peak.gigabytes_per_second, native), in_place};
  const std::string context =
      fmt::format("{:.0f} GFLOP/s of multiply-adds; c = a + b at {:.1f} GB/s, on the host {:.1f}; a = a + b {:.1f}",
                  peak.gflops, peak.gigabytes_per_second, native, in_place);
  benchmark::AddCustomContext("device", engine.device().name);
  benchmark::AddCustomContext("bounds", context);
  benchmark::AddCustomContext("peers", sb::benchmarks::peer_versions());
  benchmark::AddCustomContext("threads", std::to_string(engine.device().cores));
  std::FILE* const text = is_table ? stdout : stderr;
  fmt::print(text, "{}, {} threads; {}\n{}\n", engine.device().name, engine.device().cores, context,
             sb::benchmarks::peer_versions());

  std::vector<Entry> entries;
  sb::benchmarks::add_matmul(entries);
  sb::benchmarks::add_convolutions(entries);
  sb::benchmarks::add_attention(entries);
  sb::benchmarks::add_pointwise(entries);
  sb::benchmarks::add_norms(entries);
  sb::benchmarks::add_rows(entries);
  sb::benchmarks::add_pooling(entries);

  std::vector<Result> results;
  bool is_wrong = false;
  for (const Entry& entry : entries)
    benchmark::RegisterBenchmark((entry.family + "/" + entry.name).c_str(),
                                 [&, entry](benchmark::State& state) {
                                   try {
                                     for (auto _ : state) {
                                       const Result r = sb::benchmarks::run_row(entry, machine, seconds);
                                       state.SetIterationTime(r.seconds);
                                       state.counters[r.unit] = r.ours;
                                       state.counters["share_of_bound"] = r.share;
                                       state.counters["spread"] = r.spread;
                                       state.counters["other_processes"] = r.others;
                                       if (r.ratio > 0) state.counters["ratio_to_best_peer"] = r.ratio;
                                       if (r.eigen > 0) state.counters["eigen"] = r.eigen;
                                       if (r.openblas > 0) state.counters["openblas"] = r.openblas;
                                       if (r.onednn > 0) state.counters["onednn"] = r.onednn;
                                       results.push_back(r);
                                     }
                                   } catch (const std::exception& fault) {
                                     is_wrong = true;
                                     state.SkipWithError(fault.what());
                                   }
                                 })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);

  Table table(results);
  if (is_table)
    benchmark::RunSpecifiedBenchmarks(&table);
  else
    benchmark::RunSpecifiedBenchmarks();
  if (!is_table) {
    fmt::print(text, "{}\n", heading());
    for (const Result& r : results) fmt::print(text, "{}\n", line(r));
  }
  print_families(results, text);
  return is_wrong ? 1 : 0;
}
