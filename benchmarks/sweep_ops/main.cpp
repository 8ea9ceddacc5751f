// Every public op at three sizes, forward and with its gradient: microseconds a call.
//   build/bench_sweep_ops                                   everything
//   build/bench_sweep_ops --benchmark_filter=pool           rows whose name matches
//   build/bench_sweep_ops --benchmark_min_time=0.05         seconds a round, of five; below 0.02 each row runs once
//   build/bench_sweep_ops --list                            names, sizes and passes
//   build/bench_sweep_ops --serve                           for sweep_ops.py, which measures PyTorch in turns with it
// A call builds the op's graph and evaluates it. Calls are queued one behind the other, as steps of training are, and
// the queue is awaited at the end of a round. The gradient is that of the first result with respect to all inputs that
// have one, from a given dy (1 of a loss), and is evaluated together with the results.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/device.h"
#include "samebytes/engine.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "sweep_ops/sweep.h"

namespace sb = samebytes;

namespace {

using sb::Array;
using sb::benchmarks::Case;
using sb::benchmarks::kSizes;
using sb::benchmarks::Row;
using Json = nlohmann::json;

constexpr int kRounds = 5;
constexpr double kSmokeSeconds = 0.02;
constexpr int kMostInRound = 20000;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Seconds of one thing done `count` times, with the wait for its end.
class Measured {
 public:
  Measured(const Row& row, int size, bool with_gradient) : case_(row.make(size)), with_gradient_(with_gradient) {
    const std::vector<Array> results = case_.forward(case_.inputs);
    sb::eval(results);
    outputs_ = results.front().size();
    if (case_.wrt == 0 || !sb::is_floating(results.front().dtype())) with_gradient_ = false;
    if (with_gradient_) dy_ = sb::uniform(results.front().shape(), 0, 1, results.front().dtype()).wait();
  }

  void call() {
    std::optional<sb::NoGrad> forward_alone;
    if (!with_gradient_) forward_alone.emplace();
    std::vector<Array> results = case_.forward(case_.inputs);
    if (with_gradient_) {
      const std::span<const Array> wrt(case_.inputs.data(), case_.wrt);
      const std::vector<Array> gradients =
          results.front().size() == 1 ? sb::gradients(results.front(), wrt) : sb::gradients(results.front(), wrt, dy_);
      results.insert(results.end(), gradients.begin(), gradients.end());
    }
    sb::eval(results);
  }

  double seconds(int count) {
    const double cpu = cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) call();
    sb::Engine::current().wait();
    cpu_ = (cpu_seconds() - cpu) / count;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  // Of one call, over as many as take `budget`.
  double round(double budget) {
    if (count_ == 0) {
      seconds(2);
      double once = seconds(1);
      while (once < budget / 8 && count_ < kMostInRound) {  // short ones need more to be told apart
        count_ = std::max(1, 2 * count_);
        once = seconds(count_);
      }
      const double each = once / std::max(1, count_);
      count_ = std::clamp(static_cast<int>(budget / each), 1, kMostInRound);
    }
    return seconds(count_) / count_;
  }

  const Case& parts() const { return case_; }
  std::int64_t outputs() const { return outputs_; }
  double cpu() const { return cpu_; }  // seconds of all threads for one call of the last round

 private:
  Case case_;
  bool with_gradient_;
  Array dy_;
  std::int64_t outputs_ = 0;
  double cpu_ = 0;
  int count_ = 0;
};

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  sb::benchmarks::add_pointwise(rows);
  sb::benchmarks::add_layout(rows);
  sb::benchmarks::add_reductions(rows);
  sb::benchmarks::add_networks(rows);
  sb::benchmarks::add_images(rows);
  sb::benchmarks::add_losses(rows);
  sb::benchmarks::add_updates(rows);
  return rows;
}

// What a peer must make: shape, type, the range of the values, and how many inputs take a gradient.
Json description(const Measured& measured) {
  Json inputs = Json::array();
  for (const Array& a : measured.parts().inputs) {
    const std::vector<double> all = sb::astype(a, sb::f64).to_vector<double>();
    const auto [low, high] = std::minmax_element(all.begin(), all.end());
    std::vector<std::int64_t> shape;
    for (int i = 0; i < a.shape().rank(); ++i) shape.push_back(a.shape()[i]);
    inputs.push_back(
        {{"shape", shape}, {"dtype", std::string(sb::name_of(a.dtype()))}, {"low", *low}, {"high", *high}});
  }
  return {{"inputs", inputs}, {"wrt", measured.parts().wrt}, {"outputs", measured.outputs()}};
}

// "open NAME SIZE PASS", then any number of "run SECONDS": a line of JSON for each.
int serve(const std::vector<Row>& rows) {
  std::cout << Json{{"device", sb::Engine::current().device().name}, {"threads", sb::Engine::current().device().cores}}
            << std::endl;
  std::optional<Measured> measured;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb, name, pass;
    words >> verb;
    try {
      if (verb == "open") {
        int size = 0;
        words >> name >> size >> pass;
        const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.name == name; });
        if (row == rows.end()) throw sb::ArgumentError("there is no row " + name);
        measured.reset();
        measured.emplace(*row, size, pass == "gradient");
        std::cout << description(*measured) << std::endl;
      } else if (verb == "run" && measured) {
        double seconds = 0;
        words >> seconds;
        const double each = measured->round(seconds);
        std::cout << Json{{"us", each * 1e6}, {"cpu_us", measured->cpu() * 1e6}} << std::endl;
      } else {
        throw sb::ArgumentError("expected open or run, got " + line);
      }
    } catch (const std::exception& fault) {
      std::cout << Json{{"fault", fault.what()}} << std::endl;
    }
  }
  return 0;
}

std::string option(int argc, char** argv, const std::string& name) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == name) return "1";
    if (word.starts_with(name + "=")) return word.substr(name.size() + 1);
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  sb::pin_threads();
  const std::string min_time = option(argc, argv, "--benchmark_min_time"),
                    filter = option(argc, argv, "--benchmark_filter");
  const double seconds = min_time.empty() ? 0.05 : std::strtod(min_time.c_str(), nullptr);
  const bool is_smoke = seconds < kSmokeSeconds;
  const std::vector<Row> rows = all_rows();
  sb::Engine engine;
  if (!option(argc, argv, "--serve").empty()) return serve(rows);

  bool is_wrong = false;
  const std::regex wanted(filter);
  const bool is_list = !option(argc, argv, "--list").empty();
  for (const Row& row : rows) {
    if (!std::regex_search(row.name, wanted)) continue;
    for (int size = 0; size < (is_smoke ? 1 : kSizes); ++size)
      for (const bool gradient : {true, false}) {
        const char* pass = gradient ? "gradient" : "forward";
        try {
          Measured measured(row, is_list ? 0 : size, gradient);
          if (gradient && measured.parts().wrt == 0) continue;
          if (is_list) {
            fmt::print("{} {} {}\n", row.name, size, pass);
          } else if (is_smoke) {
            measured.call();
            engine.wait();
            break;  // the gradient has the forward pass in it
          } else {
            std::vector<double> rounds;
            for (int i = 0; i < kRounds; ++i) rounds.push_back(measured.round(seconds));
            std::sort(rounds.begin(), rounds.end());
            fmt::print("{:<40} {:<7} {:<9} {:>12.1f} us\n", row.name, sb::benchmarks::size_name(size), pass,
                       rounds[kRounds / 2] * 1e6);
          }
        } catch (const std::exception& fault) {
          is_wrong = true;
          fmt::print("{} {} {}: {}\n", row.name, sb::benchmarks::size_name(size), pass, fault.what());
        }
        std::fflush(stdout);
      }
  }
  if (is_smoke) fmt::print("{} rows\n", rows.size());
  return is_wrong ? 1 : 0;
}
