// Reductions, soft-max, norms, losses, random numbers and copies in GB/s of the bytes they must read and write once,
// beside a pointwise op of the same size. Each figure is the best and the median of several rounds, a round being
// several launches in flight.
//   build/bench_memory_bound            everything
//   build/bench_memory_bound softmax    rows whose name contains "softmax"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/engine.h"
#include "samebytes/ops.h"

namespace sb = samebytes;

namespace {

constexpr int kRounds = 9;
constexpr int kInFlight = 8;

struct Row {
  std::string name;
  double bytes;  // of one result
  std::function<sb::Array()> make;
};

double seconds_of_one(const Row& row) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<sb::Array> results;
  for (int i = 0; i < kInFlight; ++i) results.push_back(row.make().eval());
  results.back().wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kInFlight;
}

sb::Array values(const sb::Shape& shape) { return sb::uniform(shape, -1, 1).wait(); }
double bytes(const sb::Array& a) { return 4.0 * static_cast<double>(a.size()); }

sb::Array logit_gradient(const sb::Array& logits, const sb::Array& labels) {
  const std::vector<sb::Array> wrt{logits};
  return sb::gradients(sb::cross_entropy(logits, labels), wrt)[0];
}

sb::Array norm_gradient(const sb::Array& y, const sb::Array& x) {
  const std::vector<sb::Array> wrt{x};
  return sb::gradients(sb::sum(y * x), wrt)[0];
}

sb::Array table_gradient(const sb::Array& table, const sb::Array& ids) {
  const std::vector<sb::Array> wrt{table};
  return sb::gradients(sb::sum(sb::embedding(ids, table)), wrt)[0];
}

}  // namespace

int main(int count, char** arguments) {
  const std::string wanted = count > 1 ? arguments[1] : "";
  sb::Engine engine;
  std::vector<Row> rows;
  const sb::Array flat = values({std::int64_t{1} << 23});
  rows.push_back({"exp [8M]", 2 * bytes(flat), [=] { return sb::exp(flat); }});
  rows.push_back({"sum of all [8M]", bytes(flat), [=] { return sb::sum(flat); }});
  rows.push_back({"sum of squares [8M]", bytes(flat), [=] { return sb::sum_of_squares(flat); }});
  rows.push_back({"dropout [8M]", 2 * bytes(flat), [=] { return sb::dropout(flat, 0.5); }});
  rows.push_back({"uniform [8M]", bytes(flat), [=] { return sb::uniform(flat.shape()); }});
  rows.push_back({"normal [8M]", bytes(flat), [=] { return sb::normal(flat.shape()); }});
  rows.push_back({"concat of two [8M]", 4 * bytes(flat), [=] { return sb::concat({flat, flat}, 0); }});
  const sb::Array table = values({50257, 768});
  const sb::Array ids = sb::astype(sb::uniform({8192}, 0, 50257), sb::i32).wait();
  const double taken = 4.0 * 8192 * 768;
  rows.push_back({"embedding [8192] of [50257, 768]", 2 * taken, [=] { return sb::embedding(ids, table); }});
  rows.push_back({"its gradient", taken + bytes(table), [=] { return table_gradient(table, ids); }});
  for (const sb::Shape& shape :
       {sb::Shape{800000, 10}, sb::Shape{131072, 64}, sb::Shape{16384, 512}, sb::Shape{160, 50257}}) {
    const sb::Array a = values(shape);
    const sb::Array labels = sb::argmax(a).wait();
    const std::string size = " " + shape.to_string();
    rows.push_back({"sum of rows" + size, bytes(a), [=] { return sb::sum(a, {1}); }});
    rows.push_back({"sum of columns" + size, bytes(a), [=] { return sb::sum(a, {0}); }});
    rows.push_back({"cumsum of rows" + size, 2 * bytes(a), [=] { return sb::cumsum(a, 1); }});
    rows.push_back({"cumsum of columns" + size, 2 * bytes(a), [=] { return sb::cumsum(a, 0); }});
    rows.push_back({"sort of rows" + size, 3 * bytes(a), [=] { return sb::sort(a).values; }});
    rows.push_back({"argmax" + size, bytes(a), [=] { return sb::argmax(a); }});
    rows.push_back({"softmax" + size, 2 * bytes(a), [=] { return sb::softmax(a); }});
    rows.push_back({"layer_norm" + size, 2 * bytes(a), [=] { return sb::layer_norm(a); }});
    rows.push_back({"rms_norm" + size, 2 * bytes(a), [=] { return sb::rms_norm(a); }});
    rows.push_back({"rms_norm gradient" + size, 3 * bytes(a), [=] { return norm_gradient(sb::rms_norm(a), a); }});
    rows.push_back({"cross_entropy and gradient" + size, 3 * bytes(a), [=] { return logit_gradient(a, labels); }});
  }
  for (const sb::Shape& shape : {sb::Shape{32, 56, 56, 64}, sb::Shape{2, 256, 256, 48}, sb::Shape{64, 7, 7, 512}}) {
    const sb::Array a = values(shape);
    const std::string size = " " + shape.to_string();
    // Statistics read the images once, the second pass reads and writes them.
    rows.push_back({"group_norm of 16" + size, 3 * bytes(a), [=] { return sb::group_norm(a, 16); }});
    rows.push_back(
        {"group_norm gradient" + size, 8 * bytes(a), [=] { return norm_gradient(sb::group_norm(a, 16), a); }});
    rows.push_back({"instance_norm" + size, 3 * bytes(a), [=] { return sb::instance_norm(a); }});
    rows.push_back({"pad by 1" + size, 4 * bytes(a), [=] { return sb::pad(a, {{}, {1, 1}, {1, 1}, {}}); }});
    rows.push_back({"pad by 1, reflect" + size, 4 * bytes(a), [=] {
                      return sb::pad(a, {{}, {1, 1}, {1, 1}, {}}, sb::PadMode::reflect);
                    }});
  }
  std::erase_if(rows, [&](const Row& row) { return row.name.find(wanted) == std::string::npos; });
  std::vector<std::vector<double>> seconds(rows.size());
  for (int round = 0; round <= kRounds; ++round)  // the first round builds the kernels
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double s = seconds_of_one(rows[i]);
      if (round > 0) seconds[i].push_back(s);
    }
  std::printf("%s\n%-48s %10s %10s %10s\n", engine.device().name.c_str(), "", "best us", "median us", "best GB/s");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::sort(seconds[i].begin(), seconds[i].end());
    std::printf("%-48s %10.1f %10.1f %10.2f\n", rows[i].name.c_str(), seconds[i].front() * 1e6,
                seconds[i][seconds[i].size() / 2] * 1e6, rows[i].bytes / seconds[i].front() * 1e-9);
  }
}
