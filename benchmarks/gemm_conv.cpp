// Matrix products and convolutions in GFLOP/s beside Eigen's product on the same cores, all taken in turns in one run:
// other load then hits every row alike. Each figure is the best and the median of several rounds, a round being several
// launches in flight.
//   build/bench_gemm_conv            everything
//   build/bench_gemm_conv 1024       rows whose name contains "1024"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "native/eigen_product.h"
#include "samebytes/autograd.h"
#include "samebytes/engine.h"
#include "samebytes/ops.h"

namespace sb = samebytes;

namespace {

constexpr int kRounds = 5;
constexpr double kFlopsPerRound = 4e9;
constexpr int kMostInFlight = 32;

struct Row {
  std::string name;
  double flops;                      // of one launch
  std::function<void(int)> run;      // that many, and waits
  std::vector<double> seconds = {};  // of one launch, per round
};

double seconds_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int in_flight(const Row& row) { return std::clamp(static_cast<int>(kFlopsPerRound / row.flops), 2, kMostInFlight); }

// Evaluates `count` fresh nodes of the same op in one run.
void evaluate(const std::function<sb::Array()>& make, int count) {
  std::vector<sb::Array> results;
  for (int i = 0; i < count; ++i) results.push_back(make());
  sb::eval(results);
  sb::Engine::current().wait();
}

Row product(std::int64_t m, std::int64_t n, std::int64_t k, bool transposed_a = false, bool transposed_b = false) {
  const sb::Array a =
      transposed_a ? sb::transpose(sb::uniform({k, m}, -1, 1).wait()) : sb::uniform({m, k}, -1, 1).wait();
  const sb::Array b =
      transposed_b ? sb::transpose(sb::uniform({n, k}, -1, 1).wait()) : sb::uniform({k, n}, -1, 1).wait();
  const std::string name = "matmul " + std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) +
                           (transposed_a ? " T." : "") + (transposed_b ? " .T" : "");
  return {name, 2.0 * static_cast<double>(m * n * k),
          [a, b](int count) { evaluate([&] { return sb::matmul(a, b); }, count); }};
}

Row eigen(int m, int n, int k) {
  const auto a = sb::uniform({m, k}, -1, 1).to_vector<float>(), b = sb::uniform({k, n}, -1, 1).to_vector<float>();
  return {"eigen  " + std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k), 2.0 * m * n * k,
          [a, b, c = std::vector<float>(static_cast<std::size_t>(m * n)), m, n, k](int count) mutable {
            for (int i = 0; i < count; ++i) sb::benchmarks::eigen_product(a.data(), b.data(), c.data(), m, n, k);
          }};
}

// The three passes of one convolution.
std::vector<Row> three_passes(const std::string& name, const sb::Array& src, const sb::Array& weight,
                              const std::function<sb::Array(const sb::Array&, const sb::Array&)>& conv) {
  const sb::Array dy = sb::uniform(conv(src, weight).shape(), -1, 1).wait();
  const double flops = 2.0 * static_cast<double>(dy.size() / dy.shape().back()) * static_cast<double>(weight.size());
  const auto gradient = [=](const sb::Array& wrt) {
    return sb::gradients(sb::sum(conv(src, weight) * dy), std::span<const sb::Array>(&wrt, 1))[0];
  };
  std::vector<Row> rows;
  rows.push_back({name + ", forward", flops, [=](int count) { evaluate([&] { return conv(src, weight); }, count); }});
  rows.push_back(
      {name + ", input gradient", flops, [=](int count) { evaluate([&] { return gradient(src); }, count); }});
  rows.push_back(
      {name + ", weight gradient", flops, [=](int count) { evaluate([&] { return gradient(weight); }, count); }});
  return rows;
}

// A square convolution that keeps the image's size (stride 1) or halves it (stride 2).
std::vector<Row> convolution(std::int64_t images, std::int64_t size, std::int64_t in, std::int64_t out, int kernel = 3,
                             int stride = 1, int groups = 1) {
  sb::Conv2dOptions options;
  options.stride_h = options.stride_w = stride;
  options.pad_h = options.pad_w = kernel / 2;
  options.groups = groups;
  const std::string name = "conv " + std::to_string(images) + " x " + std::to_string(size) + "x" +
                           std::to_string(size) + ", " + std::to_string(in) + " to " + std::to_string(out) + ", " +
                           std::to_string(kernel) + "x" + std::to_string(kernel) +
                           (stride > 1 ? " stride " + std::to_string(stride) : "") +
                           (groups > 1 ? " in " + std::to_string(groups) + " groups" : "");
  return three_passes(
      name, sb::uniform({images, size, size, in}, -1, 1).wait(),
      sb::uniform({kernel, kernel, in / groups, out}, -1, 1).wait(),
      [options](const sb::Array& src, const sb::Array& weight) { return sb::conv2d(src, weight, {}, options); });
}

std::vector<Row> sequences(std::int64_t count, std::int64_t length, std::int64_t in, std::int64_t out, int kernel) {
  const std::string name = "conv " + std::to_string(count) + " x " + std::to_string(length) + ", " +
                           std::to_string(in) + " to " + std::to_string(out) + ", " + std::to_string(kernel);
  return three_passes(name, sb::uniform({count, length, in}, -1, 1).wait(),
                      sb::uniform({kernel, in, out}, -1, 1).wait(),
                      [kernel](const sb::Array& src, const sb::Array& weight) {
                        return sb::conv1d(src, weight, {}, {.pad = kernel / 2});
                      });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string wanted = argc > 1 ? argv[1] : "";
  sb::Engine engine;
  std::printf("%s, %s memory\n", engine.device().name.c_str(), sb::name_of(engine.device().memory_mode));
  std::vector<Row> rows = {eigen(1024, 1024, 1024),
                           product(1024, 1024, 1024),
                           product(1024, 1024, 1024, false, true),
                           product(1024, 1024, 1024, true, false),
                           eigen(64, 512, 784),
                           product(64, 512, 784, false, true),
                           product(512, 784, 64, true, false),
                           eigen(256, 256, 256),
                           product(256, 256, 256),
                           product(288, 32, 50176, true, false)};
  const auto add = [&rows](std::vector<Row> more) { std::move(more.begin(), more.end(), std::back_inserter(rows)); };
  add(convolution(64, 28, 1, 32));
  add(convolution(64, 28, 32, 64));
  add(convolution(64, 14, 32, 64));
  add(convolution(64, 14, 64, 64));
  add(convolution(64, 32, 3, 16));
  add(convolution(64, 32, 16, 16));
  add(convolution(64, 32, 16, 32, 3, 2));
  add(convolution(64, 16, 32, 32));
  add(convolution(64, 16, 32, 64, 3, 2));
  add(convolution(64, 8, 64, 64));
  add(convolution(64, 32, 16, 32, 1, 2));
  add(convolution(64, 14, 64, 128, 1));
  add(sequences(64, 2001, 1, 32, 7));
  add(sequences(64, 1000, 32, 32, 5));
  add(sequences(64, 500, 32, 64, 5));
  add(convolution(8, 56, 128, 128, 3, 1, 128));
  add(convolution(8, 56, 128, 128, 3, 2, 128));
  add(convolution(8, 28, 128, 128, 3, 1, 32));
  std::erase_if(rows, [&](const Row& row) { return row.name.find(wanted) == std::string::npos; });

  for (Row& row : rows) row.run(in_flight(row));  // builds the kernels, makes the plans
  for (int round = 0; round < kRounds; ++round)
    for (Row& row : rows) {
      const int count = in_flight(row);
      row.seconds.push_back(seconds_of([&] { row.run(count); }) / count);
    }
  std::printf("%-64s %10s %10s %12s\n", "", "best", "median", "best us");
  for (Row& row : rows) {
    std::sort(row.seconds.begin(), row.seconds.end());
    std::printf("%-64s %10.0f %10.0f %12.1f\n", row.name.c_str(), row.flops / row.seconds.front() * 1e-9,
                row.flops / row.seconds[row.seconds.size() / 2] * 1e-9, row.seconds.front() * 1e6);
  }
}
