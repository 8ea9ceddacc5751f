// Products and training of bf16 with the CPU's instructions for tiles and for pairs of them, beside f32 and beside bf16
// without. The four take turns in one process; a figure is the median of the rounds, a ratio the median of the rounds'
// ratios. Each product is checked against f32 first.
//   build/bench_bf16             everything
//   build/bench_bf16 products    only these
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"

namespace sb = samebytes;

namespace {

constexpr int kRounds = 9;
constexpr double kTurnSeconds = 0.03;

// One side of a comparison.
struct Side {
  std::string name;
  sb::Dtype dtype;
  std::unique_ptr<sb::Engine> engine;
};

std::vector<Side> make_sides() {
  std::vector<Side> sides;
  const auto add = [&](const char* name, sb::Dtype dtype, const char* instructions) {
    setenv("SAMEBYTES_MATRIX_INSTRUCTIONS", instructions, 1);
    sides.push_back({name, dtype, std::make_unique<sb::Engine>()});
  };
  add("f32", sb::f32, "0");
  add("bf16", sb::bf16, "1");  // tiles, where the CPU has them
  add("bf16 pairs", sb::bf16, "avx512_bf16");
  add("bf16 widened", sb::bf16, "0");
  return sides;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Seconds of each side and round, in turns; run(side, n) does it n times and waits.
std::vector<std::vector<double>> take_turns(std::vector<Side>& sides,
                                            const std::function<void(std::size_t, int)>& run) {
  std::vector<int> times;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const sb::EngineScope scope(*sides[i].engine);
    run(i, 2);
    times.push_back(std::max(1, static_cast<int>(kTurnSeconds / seconds_of([&] { run(i, 1); }))));
  }
  std::vector<std::vector<double>> seconds(sides.size());
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const sb::EngineScope scope(*sides[i].engine);
      seconds[i].push_back(seconds_of([&] { run(i, times[i]); }) / times[i]);
    }
  }
  return seconds;
}

// f32's time by a side's, round by round.
double ratio(const std::vector<std::vector<double>>& seconds, std::size_t side) {
  std::vector<double> ratios;
  for (std::size_t r = 0; r < seconds[side].size(); ++r) ratios.push_back(seconds[0][r] / seconds[side][r]);
  return median(ratios);
}

void print(const std::string& name, const std::vector<std::vector<double>>& seconds) {
  std::printf("%-26s %10.3f %10.3f %10.3f %10.3f   %.2f, %.2f, %.2f\n", name.c_str(), 1e3 * median(seconds[0]),
              1e3 * median(seconds[1]), 1e3 * median(seconds[2]), 1e3 * median(seconds[3]), ratio(seconds, 1),
              ratio(seconds, 2), ratio(seconds, 3));
  std::fflush(stdout);
}

void products(std::vector<Side>& sides) {
  std::printf("%-26s %10s %10s %10s %10s   %s\n", "m x n x k, layout", "f32 ms", "bf16", "pairs", "widened",
              "f32's time by theirs");
  struct Size {
    std::int64_t m, n, k;
  };
  for (const Size s : {Size{1024, 1024, 1024}, Size{512, 512, 512}, Size{128, 2048, 2048}, Size{1024, 384, 384},
                       Size{1024, 1536, 384}, Size{1024, 384, 1536}, Size{384, 1536, 1024}}) {
    for (const char* layout : {"NN", "NT", "TN"}) {
      std::vector<sb::Array> left, right;
      for (const Side& side : sides) {
        const sb::EngineScope scope(*side.engine);
        // Engines of one seed draw the same numbers.
        sb::Array a = sb::astype(sb::astype(sb::uniform({s.m, s.k}, -1, 1), sb::bf16), side.dtype),
                  b = sb::astype(sb::astype(sb::uniform({s.k, s.n}, -1, 1), sb::bf16), side.dtype);
        if (layout[0] == 'T') a = sb::transpose(sb::contiguous(sb::transpose(a)).wait());
        if (layout[1] == 'T') b = sb::transpose(sb::contiguous(sb::transpose(b)).wait());
        left.push_back(a.eval());
        right.push_back(b.eval());
      }
      std::vector<std::vector<float>> results;
      for (std::size_t i = 0; i < sides.size(); ++i) {
        const sb::EngineScope scope(*sides[i].engine);
        results.push_back(sb::astype(sb::matmul(left[i], right[i]), sb::f32).to_vector<float>());
        for (std::size_t e = 0; e < results[0].size(); ++e) {
          constexpr float kBf16Step = 0x1p-8F, kSmall = 1e-3F;
          const float off = std::abs(results[i][e] - results[0][e]);
          if (off <= kBf16Step * std::abs(results[0][e]) + kSmall) continue;
          std::printf("%s gives %g, f32 %g\n", sides[i].name.c_str(), results[i][e], results[0][e]);
          std::exit(1);
        }
      }
      const auto seconds = take_turns(sides, [&](std::size_t i, int n) {
        std::vector<sb::Array> kept;
        for (int j = 0; j < n; ++j) kept.push_back(sb::matmul(left[i], right[i]).eval());
        kept.back().wait();
      });
      print(std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k) + " " + layout, seconds);
    }
  }
}

// 1024 - 2048 - 2048 - 2048 - 10, batch 128, AdamW.
struct WideMlp {
  explicit WideMlp(sb::Dtype dtype) : net(make()), is_narrow(dtype != sb::f32) {
    if (is_narrow) sb::keep_working_copies(net->parameters(), dtype);
    adam = std::make_unique<sb::optim::AdamW>(net->parameters());
    x = sb::uniform({kBatch, 1024}, -1, 1).wait();
    labels = sb::astype(sb::uniform({kBatch}, 0, 10), sb::i32).wait();
  }
  static std::unique_ptr<sb::nn::Sequential> make() {
    constexpr std::int64_t kWide = 2048;
    return std::make_unique<sb::nn::Sequential>(sb::nn::Linear({.in = 1024, .out = kWide}), sb::nn::Relu(),
                                                sb::nn::Linear({.in = kWide, .out = kWide}), sb::nn::Relu(),
                                                sb::nn::Linear({.in = kWide, .out = kWide}), sb::nn::Relu(),
                                                sb::nn::Linear({.in = kWide, .out = 10}));
  }
  void step() {
    sb::Array loss;
    {
      const sb::Autocast use({.dtype = sb::bf16, .enabled = is_narrow});
      loss = sb::cross_entropy((*net)(x), labels);
    }
    adam->step(loss);
  }
  static constexpr std::int64_t kBatch = 128;
  std::unique_ptr<sb::nn::Sequential> net;
  bool is_narrow;
  std::unique_ptr<sb::optim::AdamW> adam;
  sb::Array x, labels;
};

void training(std::vector<Side>& sides) {
  std::vector<std::unique_ptr<WideMlp>> nets;
  for (const Side& side : sides) {
    const sb::EngineScope scope(*side.engine);
    nets.push_back(std::make_unique<WideMlp>(side.dtype));
  }
  const auto seconds = take_turns(sides, [&](std::size_t i, int n) {
    for (int j = 0; j < n; ++j) nets[i]->step();
    sides[i].engine->wait();
  });
  print("training of a wide MLP", seconds);
  for (std::size_t i = 0; i < nets.size(); ++i) {
    const sb::EngineScope scope(*sides[i].engine);
    nets[i].reset();
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::string wanted = count > 1 ? arguments[1] : "";
  sb::pin_threads();
  std::vector<Side> sides = make_sides();
  if (wanted.empty() || wanted == "training") training(sides);
  if (wanted.empty() || wanted == "products") products(sides);
  return 0;
}
