// The ledger of memory against what the system says: at the peak of a training step both agree, so nothing large lives
// beside the ledger. Slow: the arrays are large enough for what drivers need not to matter.
#include <gtest/gtest.h>
#include <malloc.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "samebytes/samebytes.h"

namespace samebytes::testing {
namespace {

std::optional<std::size_t> status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string word;
    std::size_t kilobytes = 0;
    if (words >> word >> kilobytes && word == name + ":") return kilobytes * 1024;
  }
  return {};
}

// The largest resident size is counted from now on.
bool reset_resident_peak() {
  std::ofstream file("/proc/self/clear_refs");
  return static_cast<bool>(file << "5" << std::flush);
}

MemoryReport train(const optim::AdamWOptions& options, int layers) {
  constexpr std::int64_t kWidth = 2560;
  Engine engine;
  std::vector<Array> cells;
  for (int i = 0; i < layers; ++i) cells.push_back(cell(uniform({kWidth, kWidth}, -0.03, 0.03), "w"));
  optim::AdamW adam(cells, options);
  const Array x = uniform({8, kWidth}, -1.0, 1.0);
  for (int i = 0; i < 2; ++i) {
    const auto loss = [&] {
      Array y = x;
      for (const Array& w : cells) y = tanh(matmul(y, w));
      return mean(square(y));
    };
    adam.step(loss());
  }
  engine.wait();
  return engine.memory();
}

TEST(Resident, the_peak_of_a_training_step_is_that_of_the_ledger) {
  std::size_t peaks[3], moments[3];
  // Gradients together, released, and with moments in 16 bits too: twice the layers, since what is left of a layer is
  // about half. The driver's programs are some 40 MB beside that, whatever the size.
  for (const int run : {0, 1, 2}) {
    const int layers = run > 1 ? 20 : 10;
    const optim::AdamWOptions options{.clip_norm = run > 0 ? 0.0 : 1e9, .moments = run > 1 ? bf16 : f32};
    train(options, layers);  // kernels are built and cached now
    malloc_trim(0);          // what the host's allocator kept of it would be used again, and not grow
    if (!reset_resident_peak()) GTEST_SKIP() << "no_resident_peak: the system does not set it back";
    const std::size_t before = status_bytes("VmHWM").value_or(0);
    const MemoryReport report = train(options, layers);
    const std::size_t ledger = peaks[run] = report.peak_bytes;
    moments[run] = report.peak_by_category[MemoryCategory::optimizer];
    EXPECT_EQ(report.peak_by_category.total(), ledger);
    const std::size_t grown = status_bytes("VmHWM").value_or(0) - before;
    EXPECT_NEAR(static_cast<double>(grown), static_cast<double>(ledger), 0.05 * static_cast<double>(ledger))
        << "run " << run;
  }
  EXPECT_LT(peaks[1], 0.85 * static_cast<double>(peaks[0]));  // 250 MiB of 1000: all gradients but a segment
  EXPECT_NEAR(static_cast<double>(moments[1]), static_cast<double>(moments[2]), 1e6);
}

TEST(Resident, live_cached_and_adopted_bytes_are_what_a_process_grows_by) {
  constexpr std::int64_t kNumbers = std::int64_t{48} << 20;
  const auto fill = [](std::int64_t count, double value) {
    Array array = full({count}, value);
    array.eval();
    return array;
  };
  {  // what compiling takes is no array's: the same launches, before
    Engine warm;
    for (const std::int64_t count : {kNumbers, kNumbers / 2}) fill(count, 1.0);
    warm.wait();
  }
  Engine engine;
  fill(1000, 1.0);  // its program
  engine.wait();
  malloc_trim(0);
  const std::size_t before = status_bytes("VmRSS").value_or(0);
  const Array held = fill(kNumbers, 1.0);
  {
    const Array dropped = fill(kNumbers / 2, 2.0);
    engine.wait();
  }
  Adoption verdict;
  const Array mine = adopt(std::vector<float>(kNumbers, 3.0f), {kNumbers}, &verdict);
  ASSERT_TRUE(verdict.adopted) << verdict.reason;
  engine.wait();
  const MemorySnapshot snapshot = take_memory_snapshot(engine);
  const MemoryReport& report = snapshot.report;
  EXPECT_GE(report.live_bytes, kNumbers * sizeof(float));
  EXPECT_GE(report.cached_bytes, kNumbers / 2 * sizeof(float));
  EXPECT_EQ(report.adopted_bytes, kNumbers * sizeof(float));
  const auto ledger = static_cast<double>(report.live_by_category.total() + report.cached_bytes + report.adopted_bytes);
  EXPECT_NEAR(static_cast<double>(snapshot.process_bytes - before), ledger, 0.05 * ledger);
}

}  // namespace
}  // namespace samebytes::testing
