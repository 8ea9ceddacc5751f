// Attention in GFLOP/s beside a matrix product, and generation in tokens per second, all taken in turns in one run:
// other load then hits every row alike. Causal attention counts half of the scores. Each figure is the best and the
// median of several rounds.
//   build/bench_attention           everything
//   build/bench_attention causal    rows whose name contains "causal"
//   build/bench_attention memory    the peak of memory by length, alone
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/engine.h"
#include "samebytes/models.h"
#include "samebytes/ops.h"
#include "samebytes/ops/attention.h"

namespace sb = samebytes;

namespace {

constexpr int kRounds = 9;
constexpr int kTokens = 32;  // generated in a round

struct Row {
  std::string name;
  double work;  // flop, or tokens, of one round
  double unit;  // of the figure
  std::function<void()> run;
  std::vector<double> seconds = {};
};

std::string text(std::int64_t n) { return std::to_string(n); }

Row product() {
  const sb::Array a = sb::uniform({1024, 1024}, -1, 1).wait(), b = sb::uniform({1024, 1024}, -1, 1).wait();
  return {"matmul 1024 x 1024 x 1024", 2.0 * 1024 * 1024 * 1024, 1e9, [=] { sb::matmul(a, b).wait(); }};
}

std::vector<Row> attention(std::int64_t batch, std::int64_t length, std::int64_t heads, std::int64_t depth,
                           bool causal) {
  const sb::Array qkv = sb::uniform({batch, length, 3 * heads, depth}, -1, 1).wait(),
                  dy = sb::uniform({batch, length, heads, depth}, -1, 1).wait();
  const std::string name = "attention " + text(batch) + " x " + text(length) + ", " + text(heads) + " heads of " +
                           text(depth) + (causal ? ", causal" : "");
  const double scores = static_cast<double>(batch * heads * length * length * depth) * (causal ? 0.5 : 1.0);
  const auto forward = [=] { return sb::packed_attention(qkv, heads, {.causal = causal}); };
  return {{name + ", forward", 4 * scores, 1e9, [=] { forward().wait(); }},
          {name + ", with gradient", 18 * scores, 1e9,
           [=] { sb::gradients(sb::sum(forward() * dy), std::span<const sb::Array>(&qkv, 1))[0].wait(); }}};
}

Row generation() {
  auto model = std::make_shared<sb::models::Gpt>(sb::models::gpt(sb::models::GptSize::nano));
  return {"generation, GPT nano, tokens/s", kTokens, 1, [=] {
            sb::models::generate(*model, std::vector<std::int32_t>{1, 2, 3}, {.tokens = kTokens});
          }};
}

// What forward and backward take at most, in an engine of its own for each length: linear in T, since no T x T array
// is ever stored.
void print_memory() {
  constexpr std::int64_t kHeads = 8, kDepth = 64, kShortest = 256, kLongest = 4096;
  std::printf("%-56s %10s %10s %12s\n", "memory peak, 8 heads of 64, causal, with gradient", "MiB", "KiB / T",
              "T x T x H MiB");
  for (std::int64_t length = kShortest; length <= kLongest; length *= 2) {
    sb::Engine engine;
    const sb::EngineScope scope(engine);
    const sb::Array qkv = sb::uniform({1, length, 3 * kHeads, kDepth}, -1, 1).wait();
    const sb::Array y = sb::packed_attention(qkv, kHeads, {.causal = true});
    sb::gradients(sb::sum(y * y), std::span<const sb::Array>(&qkv, 1))[0].wait();
    const auto peak = static_cast<double>(engine.memory().peak_bytes);
    std::printf("%-56s %10.2f %10.2f %12.1f\n", ("T = " + text(length)).c_str(), peak / 1048576,
                peak / 1024 / static_cast<double>(length), static_cast<double>(4 * length * length * kHeads) / 1048576);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string wanted = argc > 1 ? argv[1] : "";
  if (wanted == "memory") {
    print_memory();
    return 0;
  }
  sb::Engine engine;
  std::printf("%s, %s memory\n", engine.device().name.c_str(), sb::name_of(engine.device().memory_mode));
  std::vector<Row> rows = {product(), generation()};
  const auto add = [&rows](std::vector<Row> more) { std::move(more.begin(), more.end(), std::back_inserter(rows)); };
  add(attention(1, 1024, 12, 64, true));
  add(attention(1, 1024, 12, 64, false));
  add(attention(8, 128, 12, 64, true));
  add(attention(16, 64, 4, 32, true));
  add(attention(1, 1024, 8, 128, true));
  std::erase_if(rows, [&](const Row& row) { return row.name.find(wanted) == std::string::npos; });

  for (Row& row : rows) row.run();  // builds the kernels, makes the plans
  for (int round = 0; round < kRounds; ++round)
    for (Row& row : rows) {
      const auto start = std::chrono::steady_clock::now();
      row.run();
      row.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
  std::printf("%-56s %10s %10s %12s\n", "", "best", "median", "best us");
  for (Row& row : rows) {
    std::sort(row.seconds.begin(), row.seconds.end());
    std::printf("%-56s %10.1f %10.1f %12.1f\n", row.name.c_str(), row.work / row.seconds.front() / row.unit,
                row.work / row.seconds[row.seconds.size() / 2] / row.unit, row.seconds.front() * 1e6);
  }
  if (wanted.empty()) print_memory();
}
