// The loop of docs/checkpoints.md that outlives device errors: it ends with the bytes of a run without any.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "runtime/faults.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"

namespace samebytes {
namespace {

class RecoveryTest : public testing::OnDevice {
 protected:
  struct Outcome {
    std::vector<float> weights;
    int failures = 0;
    std::string error, call, device;
  };

  // Launches of the products fail in the queue once the run has come to one of `failing` steps, each once.
  static Outcome train(std::vector<std::int64_t> failing) {
    constexpr std::int64_t kEpochs = 2, kEvery = 5;
    Outcome outcome;
    std::optional<RunSnapshot> kept;
    for (;;) {
      try {
        const auto engine = testing::make_engine(GetParam(), {.seed = 3});
        const EngineScope scope(*engine);
        nn::Sequential net(nn::Flatten(), nn::Dropout(0.2), nn::Linear({.in = 64, .out = 10}));
        optim::AdamW adam(net.parameters(), {.rate = 1e-2});
        data::Loader batches(*engine, data::slice(data::digits().train, 0, 128), {.batch = 16, .shuffle = true});
        RunState run(*engine);
        run.add("model", net);
        run.add("optimizer", adam);
        run.add("batches", batches);
        if (kept) run.restore(*kept);
        while (batches.place().epoch < kEpochs)
          for (const auto& [image, label] : batches) {
            if (!failing.empty() && adam.step_count() == failing.front()) {
              failing.erase(failing.begin());
              engine->wait();  // PoCL 3.1 may end in an assertion where an event fails while its neighbours finish
              detail::faults().fail_launch = true;
            }
            adam.step(cross_entropy(net(image), label));
            detail::faults().fail_launch = false;
            if (adam.step_count() % kEvery == 0) kept = run.snapshot();
          }
        engine->wait();
        outcome.weights = net.parameters().front().to_vector<float>();
        return outcome;
      } catch (const DeviceError& error) {
        detail::faults().fail_launch = false;
        outcome.error = error.what();
        outcome.call = error.call();
        outcome.device = error.device();
        if (++outcome.failures > 3) throw;
      }
    }
  }

  void SetUp() override {
    testing::OnDevice::SetUp();
    const detail::MutexLock lock(detail::faults().mutex);
    detail::faults().failing_op = "linear";
  }
};
SAMEBYTES_ON_EVERY_DEVICE(RecoveryTest);

TEST_P(RecoveryTest, a_loop_that_restores_after_device_errors_ends_with_the_same_bytes) {
  const Outcome plain = train({});
  EXPECT_EQ(plain.failures, 0);
  // Before the first snapshot, and between later ones.
  const Outcome failed = train({2, 7, 13});
  EXPECT_EQ(failed.failures, 3);
  EXPECT_EQ(failed.weights, plain.weights);
  EXPECT_NE(failed.error.find("linear"), std::string::npos) << failed.error;
  EXPECT_FALSE(failed.call.empty());
  EXPECT_FALSE(failed.device.empty());
}

}  // namespace
}  // namespace samebytes
