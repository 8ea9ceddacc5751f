// The two branches of the transit network on two parts of one device, a core each: the branch over the local view runs
// while the other one does (models::TransitOptions::local_device). Steps of training with both branches on one part, on
// two parts, and on the whole device, in turns; the parameters afterwards are compared byte for byte. With --trace the
// steps on two parts are recorded; benchmarks/timeline.py draws one.
//   build/bench_side_by_side [--batch 32] [--steps 12] [--points 2001] [--local 201] [--trace FILE]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"

namespace sb = samebytes;

namespace {

struct Sizes {
  std::int64_t batch = 32, points = 2001, local = 201;
  int steps = 12;
  std::string trace;
};

class Training {
 public:
  Training(const char* name, std::vector<int> split, std::optional<int> local_device, const Sizes& sizes)
      : name_(name),
        sizes_(sizes),
        engine_(std::make_unique<sb::Engine>(
            sb::EngineOptions{.split = std::move(split), .seed = 1, .profile = !sizes.trace.empty()})),
        use_(std::make_unique<sb::EngineScope>(*engine_)),
        net_(std::make_unique<sb::models::Transit>(sb::models::TransitOptions{.local_device = local_device})),
        adam_(std::make_unique<sb::optim::AdamW>(net_->parameters(), sb::optim::AdamWOptions{.rate = 1e-3})),
        global_(sb::uniform({sizes.batch, sizes.points, 1})),
        local_(sb::uniform({sizes.batch, sizes.local, 1})),
        label_(sb::astype(sb::greater(sb::uniform({sizes.batch}), sb::full({sizes.batch}, 0.5)), sb::f32)) {
    sb::eval({global_, local_, label_});
    use_.reset();
  }

  void run(int steps, sb::Profiler* profiler = nullptr) {
    const sb::EngineScope use(*engine_);
    const auto start = std::chrono::steady_clock::now();
    for (int s = 0; s < steps; ++s) {
      adam_->step(sb::bce_with_logits(reshape(net_->forward(global_, local_), {-1}), label_));
      if (profiler) profiler->step();
    }
    engine_->wait();
    seconds_.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / steps);
  }
  void forget_times() { seconds_.clear(); }
  double median() const {
    std::vector<double> sorted = seconds_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  std::vector<float> weights() const {
    const sb::EngineScope use(*engine_);
    std::vector<float> all;
    for (const sb::Array& w : net_->parameters())
      for (const float v : w.to_vector<float>()) all.push_back(v);
    return all;
  }
  std::string trace() {
    sb::Profiler profiler(*engine_, {.warmup = 2, .active = sizes_.steps});
    run(2 + sizes_.steps, &profiler);
    return sb::chrome_trace(profiler.stop());
  }
  const char* name() const { return name_; }
  sb::TransferReport transfers() const { return engine_->transfers(); }

 private:
  const char* name_;
  Sizes sizes_;
  std::unique_ptr<sb::Engine> engine_;
  std::unique_ptr<sb::EngineScope> use_;
  std::unique_ptr<sb::models::Transit> net_;
  std::unique_ptr<sb::optim::AdamW> adam_;
  sb::Array global_, local_, label_;
  std::vector<double> seconds_;
};

}  // namespace

int main(int argc, char** argv) {
  Sizes sizes;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i];
    if (word == "--batch") sizes.batch = std::atoll(argv[i + 1]);
    if (word == "--points") sizes.points = std::atoll(argv[i + 1]);
    if (word == "--local") sizes.local = std::atoll(argv[i + 1]);
    if (word == "--steps") sizes.steps = std::atoi(argv[i + 1]);
    if (word == "--trace") sizes.trace = argv[i + 1];
  }
  constexpr int kRounds = 7;
  std::vector<std::unique_ptr<Training>> trainings;
  trainings.push_back(std::make_unique<Training>("both branches on one core", std::vector<int>{1, 1}, 0, sizes));
  trainings.push_back(std::make_unique<Training>("a core for each branch", std::vector<int>{1, 1}, 1, sizes));
  trainings.push_back(
      std::make_unique<Training>("both branches on two cores", std::vector<int>{}, std::nullopt, sizes));
  for (int r = -1; r < kRounds; ++r)
    for (const auto& training : trainings) {
      training->run(sizes.steps);
      if (r < 0) training->forget_times();
    }
  bool is_same = true;
  for (const auto& training : trainings) {
    const bool same = training->weights() == trainings[0]->weights();
    is_same = is_same && same;
    fmt::print("{:<28} {:7.3f} ms a step, {:.2f} of the first, bytes {}, {} bytes copied\n", training->name(),
               1e3 * training->median(), training->median() / trainings[0]->median(), same ? "the same" : "DIFFER",
               training->transfers().bytes_copied);
  }
  if (!sizes.trace.empty()) sb::io::write_file(sizes.trace, trainings[1]->trace());
  return is_same ? 0 : 1;
}
