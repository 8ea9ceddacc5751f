// What the second slot is worth, end to end: training steps of an mlp (784-512-256-10, batch 256) on a loader whose
// batches cost as much as a step, with one slot (the worker waits for the device, the device for the worker) against
// two. Two kinds of cost: a wait, as for a disk or a network, and computation on a core. Where the device runs on all
// the cores of this machine, computation competes with it, so that kind is also run on a device of all cores but one.
// Checked first: the parameters after the steps are the same bytes with one slot and two.
//   build/bench_loader_ablation [--json]
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/data.h"
#include "samebytes/engine.h"
#include "samebytes/ops.h"

namespace sb = samebytes;

namespace {

constexpr int kRounds = 5;
constexpr std::int64_t kSteps = 40, kBatch = 256, kClasses = 10;
constexpr std::int64_t kSizes[] = {784, 512, 256, kClasses};
constexpr double kRate = 0.05;

enum class Cost { wait, compute };

double seconds_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The default collate and then the cost, once a batch: timers are too coarse for a single sample.
class Costly final : public sb::data::Collate {
 public:
  Costly(Cost cost, double seconds) : cost_(cost), seconds_(seconds) {}
  std::vector<sb::data::FieldSpec> fields(const sb::data::Dataset& dataset,
                                          std::span<const std::int64_t> indices) const override {
    return inner_->fields(dataset, indices);
  }
  std::int64_t fill(const sb::data::Dataset& dataset, std::span<const std::int64_t> indices,
                    const sb::data::ReadSample& read, std::span<sb::data::Field> batch,
                    const sb::SequenceKey& key) const override {
    const std::int64_t samples = inner_->fill(dataset, indices, read, batch, key);
    if (cost_ == Cost::wait) std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
    const double end = thread_seconds() + seconds_;
    while (cost_ == Cost::compute && thread_seconds() < end) continue;
    return samples;
  }

 private:
  sb::data::CollatePtr inner_ = sb::data::default_collate();
  Cost cost_;
  double seconds_;
};

sb::data::DatasetPtr noise() {
  return sb::data::generate(kSteps * kBatch, {{"x", sb::Shape{kSizes[0]}}, {"label", sb::Shape{}, sb::i32}},
                            [](std::int64_t index, std::span<const sb::data::Field> dst) {
                              sb::Random random({.seed = 1, .index = index});
                              const auto x = dst[0].as<float>();
                              for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 8 == 0 ? random.uniform() : 0.0f;
                              dst[1].as<std::int32_t>()[0] = static_cast<std::int32_t>(random.below(kClasses));
                            });
}

class Mlp {
 public:
  Mlp() {
    for (int i = 0; i < 3; ++i) {
      const double bound = 1.0 / std::sqrt(static_cast<double>(kSizes[i]));
      const sb::RandomKey key{.seed = 7, .counter = static_cast<std::uint64_t>(i)};
      weights_.push_back(
          sb::cell(sb::uniform({kSizes[i], kSizes[i + 1]}, -bound, bound, sb::f32, key), "w" + std::to_string(i)));
    }
  }

  void step(const sb::Array& x, const sb::Array& label) {
    sb::Array hidden = x;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      hidden = sb::matmul(hidden, weights_[i]);
      if (i + 1 < weights_.size()) hidden = sb::relu(hidden);
    }
    const std::vector<sb::Array> gradients = sb::gradients(sb::cross_entropy(hidden, label), weights_);
    std::vector<sb::Array> updates;
    for (std::size_t i = 0; i < weights_.size(); ++i)
      updates.push_back(sb::update(weights_[i], weights_[i] - gradients[i] * kRate));
    sb::eval(updates);
  }

  std::vector<float> values() const {
    std::vector<float> all;
    for (const sb::Array& weight : weights_)
      for (const float value : weight.to_vector<float>()) all.push_back(value);
    return all;
  }

 private:
  std::vector<sb::Array> weights_;
};

// Seconds of a training step on batches that are all there, and cost nothing.
double step_seconds(sb::Engine& engine) {
  Mlp net;
  sb::data::Loader loader(engine, noise(), {.batch = kBatch});
  double best = 1e9;
  for (const auto& [x, label] : loader) {
    constexpr int kRepeats = 20;
    net.step(x, label);
    engine.wait();
    for (int round = 0; round < 3; ++round)
      best = std::min(best, seconds_of([&, &x = x, &label = label] {
                              for (int i = 0; i < kRepeats; ++i) net.step(x, label);
                              engine.wait();
                            }) / kRepeats);
    break;
  }
  return best;
}

struct Run {
  double seconds = 0, stall = 0;  // of a step; share in which the loop waited
  std::vector<float> parameters;
};

Run run(sb::Engine& engine, Cost cost, double cost_seconds, int slots) {
  Mlp net;
  sb::data::Loader loader(engine, noise(),
                          {.batch = kBatch,
                           .shuffle = true,
                           .slots = slots,
                           .workers = 1,
                           .collate = std::make_shared<Costly>(cost, cost_seconds)});
  Run result;
  result.seconds = seconds_of([&] {
                     for (const auto& [x, label] : loader) net.step(x, label);
                     engine.wait();
                   }) /
                   static_cast<double>(kSteps);
  result.stall = loader.stats().stall_fraction();
  result.parameters = net.values();
  return result;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// One row of the table; false where the two ways do not end with the same bytes.
bool compare(sb::Engine& engine, const char* name, Cost cost, nlohmann::json& rows) {
  sb::EngineScope use(engine);
  const double step = step_seconds(engine);
  std::vector<double> one, two, one_stall, two_stall;
  for (int round = 0; round < kRounds; ++round) {
    const Run a = run(engine, cost, step, 1), b = run(engine, cost, step, 2);
    if (a.parameters.size() != b.parameters.size() ||
        std::memcmp(a.parameters.data(), b.parameters.data(), a.parameters.size() * sizeof(float)) != 0) {
      std::fprintf(stderr, "%s: the parameters differ between one slot and two\n", name);
      return false;
    }
    one.push_back(a.seconds);
    two.push_back(b.seconds);
    one_stall.push_back(a.stall);
    two_stall.push_back(b.stall);
  }
  const auto best = [](const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); };
  rows.push_back({{"loader", name},
                  {"device", engine.device().name},
                  {"step_ms", step * 1e3},
                  {"one_slot_best_ms", best(one) * 1e3},
                  {"one_slot_median_ms", median(one) * 1e3},
                  {"two_slots_best_ms", best(two) * 1e3},
                  {"two_slots_median_ms", median(two) * 1e3},
                  {"speedup_best", best(one) / best(two)},
                  {"speedup_median", median(one) / median(two)},
                  {"one_slot_stall", median(one_stall)},
                  {"two_slots_stall", median(two_stall)}});
  std::fprintf(stderr, "%-42s %8.2f %8.2f %8.2f %8.2f %8.2f %8.0f %% %8.0f %%\n", name, step * 1e3, best(one) * 1e3,
               best(two) * 1e3, best(one) / best(two), median(one) / median(two), 100 * median(one_stall),
               100 * median(two_stall));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  nlohmann::json rows = nlohmann::json::array();
  std::fprintf(stderr, "%-42s %8s %8s %8s %8s %8s %10s %10s\n", "best ms of a step; how many times faster", "step",
               "1 slot", "2 slots", "best", "median", "stall 1", "stall 2");
  bool is_right = true;
  int cores = 0;
  {
    sb::Engine engine;
    cores = engine.device().cores;
    is_right = compare(engine, "waits as long as a step", Cost::wait, rows) && is_right;
    is_right = compare(engine, "computes as long as a step", Cost::compute, rows) && is_right;
  }
  if (cores > 1) {
    sb::Engine engine({.split = {cores - 1}});
    is_right = compare(engine, "computes as long, device leaves it a core", Cost::compute, rows) && is_right;
  }
  if (argc > 1 && std::strcmp(argv[1], "--json") == 0) std::printf("%s\n", rows.dump(1).c_str());
  return is_right ? 0 : 1;
}
