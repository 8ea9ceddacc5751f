// What a device makes of large operations: matrix products, convolution, attention, and passes over memory, each in its
// own unit beside a bound. gpu_rates.py does the same with PyTorch on a GPU, row by row under the same names, and puts
// the two side by side (benchmarks/gpu.sh). A time is the median of several rounds; a round waits once for several
// runs.
//   build/measure_gpu_rates                      everything, in the sizes of a GPU
//   build/measure_gpu_rates --shrink 5 product   rows whose name contains "product"; sizes by 2^-5, for smaller devices
// One line of JSON for each row: name, unit (TFLOP/s or GB/s), rate, ms, first_ms (with what is compiled).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/engine.h"
#include "samebytes/ops.h"
#include "samebytes/ops/attention.h"

namespace sb = samebytes;

namespace {

constexpr int kRounds = 7;
constexpr double kRoundSeconds = 0.03;

struct Row {
  std::string name;
  double work;  // FLOP, or bytes that must move
  bool is_memory;
  std::function<std::function<sb::Array()>()> make;  // the inputs; what it gives makes a result of them
};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string word_of(sb::Dtype dtype) { return std::string(sb::name_of(dtype)); }

sb::Array values(const sb::Shape& shape, sb::Dtype dtype) {
  return sb::astype(sb::uniform(shape, -1, 1), dtype).wait();
}

sb::Array gradient_of(const sb::Array& y, const sb::Array& x) {
  return sb::gradients(sb::sum(y), std::span<const sb::Array>(&x, 1))[0];
}

sb::Array convolve(const sb::Array& x, const sb::Array& w) { return sb::conv2d(x, w, {}, {.pad_h = 1, .pad_w = 1}); }

void add_products(std::vector<Row>& rows, std::int64_t shrink) {
  for (const sb::Dtype dtype : {sb::f32, sb::bf16, sb::f16}) {
    const auto product = [&](const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k, bool a, bool b) {
      m /= shrink, n /= shrink, k /= shrink;
      rows.push_back({"product " + name + " " + word_of(dtype), 2.0 * static_cast<double>(m * n * k), false, [=] {
                        const sb::Array left = values(a ? sb::Shape{k, m} : sb::Shape{m, k}, dtype);
                        const sb::Array right = values(b ? sb::Shape{n, k} : sb::Shape{k, n}, dtype);
                        return [=] {
                          return sb::matmul(a ? sb::transpose(left) : left, b ? sb::transpose(right) : right);
                        };
                      }});
    };
    product("8192", 8192, 8192, 8192, false, false);
    product("4096", 4096, 4096, 4096, false, false);
    product("4096 A'B", 4096, 4096, 4096, true, false);
    product("4096 AB'", 4096, 4096, 4096, false, true);
    product("2048", 2048, 2048, 2048, false, false);
    product("1024", 1024, 1024, 1024, false, false);
    product("8192x768x3072", 8192, 768, 3072, false, true);
    product("768x3072x8192", 768, 3072, 8192, true, false);
  }
}

void add_layers(std::vector<Row>& rows, std::int64_t shrink) {
  for (const sb::Dtype dtype : {sb::f32, sb::bf16}) {
    const std::string type = " " + word_of(dtype);
    const std::int64_t n = 128 / shrink, size = 56, channels = 64;
    const double work = 2.0 * static_cast<double>(n * size * size * channels * channels * 9);
    const auto inputs = [=] {
      return std::pair(values({n, size, size, channels}, dtype), values({3, 3, channels, channels}, dtype));
    };
    rows.push_back({"conv2d 128x56x56x64 3x3" + type, work, false, [=] {
                      const auto [x, w] = inputs();
                      return [x = x, w = w] { return convolve(x, w); };
                    }});
    rows.push_back({"conv2d 128x56x56x64 3x3, by input" + type, work, false, [=] {
                      const auto [x, w] = inputs();
                      return [x = x, w = w] { return gradient_of(convolve(x, w), x); };
                    }});
    rows.push_back({"conv2d 128x56x56x64 3x3, by filter" + type, work, false, [=] {
                      const auto [x, w] = inputs();
                      return [x = x, w = w] { return gradient_of(convolve(x, w), w); };
                    }});
    const std::int64_t batch = 8, length = 2048 / shrink, heads = 16, depth = 64;
    const double scores = static_cast<double>(batch * heads * length * length * depth) / 2;
    rows.push_back({"attention 8x2048x16x64 causal" + type, 4 * scores, false, [=] {
                      const sb::Array qkv = values({batch, length, 3 * heads, depth}, dtype);
                      return [=] { return sb::packed_attention(qkv, heads, {.causal = true}); };
                    }});
    rows.push_back({"attention 8x2048x16x64 causal, with gradient" + type, 18 * scores, false, [=] {
                      const sb::Array qkv = values({batch, length, 3 * heads, depth}, dtype);
                      return [=] { return gradient_of(sb::packed_attention(qkv, heads, {.causal = true}), qkv); };
                    }});
  }
}

void add_passes(std::vector<Row>& rows, std::int64_t shrink) {
  const std::int64_t lines = (std::int64_t{1} << 16) / shrink, width = 1024;
  for (const sb::Dtype dtype : {sb::f32, sb::bf16}) {
    const double bytes = static_cast<double>(lines * width) * static_cast<double>(sb::bytes_of(dtype));
    const auto pass = [&](const std::string& name, double moved, const std::function<sb::Array(const sb::Array&)>& op) {
      rows.push_back({"pass " + name + " " + word_of(dtype), moved * bytes, true, [=] {
                        const sb::Array x = values({lines, width}, dtype);
                        return [=] { return op(x); };
                      }});
    };
    pass("negate", 2, [](const sb::Array& x) { return -x; });
    pass("gelu", 2, [](const sb::Array& x) { return sb::gelu(x); });
    pass("sum", 1, [](const sb::Array& x) { return sb::sum(x); });
    pass("sum of rows", 1, [](const sb::Array& x) { return sb::sum(x, {1}); });
    pass("sum of columns", 1, [](const sb::Array& x) { return sb::sum(x, {0}); });
    pass("softmax", 2, [](const sb::Array& x) { return sb::softmax(x); });
    pass("layer_norm", 2, [](const sb::Array& x) { return sb::layer_norm(x); });
    pass("transpose", 2, [](const sb::Array& x) { return sb::contiguous(sb::transpose(x)); });
    rows.push_back({"pass add " + word_of(dtype), 3 * bytes, true, [=] {
                      const sb::Array x = values({lines, width}, dtype), y = values({lines, width}, dtype);
                      return [=] { return x + y; };
                    }});
  }
}

void print(const nlohmann::ordered_json& line) {
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

void measure(const Row& row) {
  const auto run = row.make();
  const auto many = [&](int n) {
    sb::Array last;
    for (int i = 0; i < n; ++i) last = run().eval();
    last.wait();
  };
  const double first = seconds_of([&] { many(1); });
  many(1);
  const int times = std::clamp(static_cast<int>(kRoundSeconds / seconds_of([&] { many(1); })), 1, 200);
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) seconds.push_back(seconds_of([&] { many(times); }) / times);
  std::nth_element(seconds.begin(), seconds.begin() + kRounds / 2, seconds.end());
  const double each = seconds[kRounds / 2], rate = row.work / each / (row.is_memory ? 1e9 : 1e12);
  print({{"name", row.name},
         {"unit", row.is_memory ? "GB/s" : "TFLOP/s"},
         {"rate", rate},
         {"ms", 1e3 * each},
         {"first_ms", 1e3 * first}});
}

// The exponent of --shrink and the part, or nothing where the arguments are others.
struct Arguments {
  int shrink = 0;
  std::string part;
};
std::optional<Arguments> read_arguments(const std::vector<std::string>& words) {
  constexpr int kMostShrunk = 6;
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--shrink" && i + 1 < words.size()) {
      const std::string& number = words[++i];
      if (number.size() != 1 || number[0] < '0' || number[0] > '0' + kMostShrunk) return {};
      arguments.shrink = number[0] - '0';
    } else if (words[i].starts_with('-') || !arguments.part.empty()) {
      return {};
    } else {
      arguments.part = words[i];
    }
  }
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = read_arguments({argv + 1, argv + argc});
  if (!arguments) {
    fmt::print(stderr, "usage: measure_gpu_rates [--shrink 0..6] [PART]\n");
    return 2;
  }
  const std::int64_t shrink = std::int64_t{1} << arguments->shrink;
  std::vector<Row> rows;
  add_passes(rows, shrink);
  add_products(rows, shrink);
  add_layers(rows, shrink);
  const sb::Engine engine;
  bool has_failed = false;
  for (const Row& row : rows) {
    if (row.name.find(arguments->part) == std::string::npos) continue;
    try {
      measure(row);
    } catch (const std::exception& error) {
      print({{"name", row.name}, {"error", error.what()}});
      has_failed = true;
    }
  }
  return has_failed ? 1 : 0;
}
