// What computing activations anew costs in time. Label slow: it compares times, so it runs alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "samebytes/models.h"
#include "samebytes/samebytes.h"

namespace samebytes::testing {
namespace {

constexpr double kMostOverhead = 0.33;

// A training step of a small GPT, made once, in an engine of its own.
class Contender {
 public:
  explicit Contender(const Checkpointing& how) : engine_({.seed = 1}) {
    const EngineScope scope(engine_);
    model_ = std::make_unique<models::Gpt>(
        models::GptOptions{.vocabulary = 128, .context = 128, .layers = 6, .heads = 4, .width = 256, .dropout = 0.1});
    model_->gradient_checkpointing(how);
    adam_ = std::make_unique<optim::AdamW>(model_->parameters());
    ids_ = astype(uniform({4, 128}, 0, 128), i32);
    step();
  }
  double step() {
    const EngineScope scope(engine_);
    const auto begin = std::chrono::steady_clock::now();
    adam_->step(cross_entropy((*model_)(ids_), ids_));
    engine_.wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  Engine engine_;
  std::unique_ptr<models::Gpt> model_;
  std::unique_ptr<optim::AdamW> adam_;
  Array ids_;
};

TEST(CheckpointingSpeed, a_checkpointed_transformer_takes_at_most_a_third_more_time) {
  Contender plain(Checkpointing::off()), checkpointed(Checkpointing::every(1));
  double best_plain = 1e9, best_checkpointed = 1e9;
  for (int round = 0; round < 8; ++round) {
    best_plain = std::min(best_plain, plain.step());
    best_checkpointed = std::min(best_checkpointed, checkpointed.step());
  }
  RecordProperty("overhead", std::to_string(best_checkpointed / best_plain - 1));
  EXPECT_LE(best_checkpointed, (1 + kMostOverhead) * best_plain);
}

}  // namespace
}  // namespace samebytes::testing
