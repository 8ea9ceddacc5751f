#include "samebytes/estimate.h"

#include <gtest/gtest.h>

#include <memory>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

constexpr std::int64_t kBatch = 48, kIn = 200, kHidden = 300, kOut = 10;

// Three steps of a small network with everything that takes memory: a loader, moments, batch norm, a value of the loss.
void train_three_steps(Engine& engine) {
  const EngineScope scope(engine);
  nn::Sequential net(nn::Linear({.in = kIn, .out = kHidden}), nn::BatchNorm({.features = kHidden}), nn::Relu(),
                     nn::Linear({.in = kHidden, .out = kOut}));
  optim::AdamW adam(net.parameters(), {.rate = 1e-3});
  const auto set =
      data::generate(3 * kBatch, {{.name = "x", .shape = {kIn}}, {.name = "label", .shape = {}, .dtype = i32}},
                     [](std::int64_t, std::span<const data::Field> sample) {
                       for (float& x : sample[0].as<float>()) x = 0.5f;
                       sample[1].as<std::int32_t>()[0] = 3;
                     });
  data::Loader batches(engine, set, {.batch = kBatch, .workers = 0});
  for (const auto& [x, label] : batches) {
    const Array loss = cross_entropy(net(x), label);
    adam.step(loss);
    EXPECT_GE(loss.value(), 0.0);
  }
}

class EstimateTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(EstimateTest);

TEST_P(EstimateTest, a_rehearsal_counts_to_the_byte_what_a_run_takes) {
  const auto real = make_engine(GetParam()), dry = make_engine(GetParam(), {.dry_run = true});
  train_three_steps(*real);
  train_three_steps(*dry);
  EXPECT_EQ(dry->memory().peak_bytes, real->memory().peak_bytes);
  EXPECT_EQ(dry->memory().peak_cause, real->memory().peak_cause);
  EXPECT_EQ(dry->plans().launches, real->plans().launches);
  EXPECT_EQ(dry->plans().plans_made, real->plans().plans_made);
  EXPECT_EQ(dry->plans().programs_built, 0u);
  EXPECT_EQ(dry->transfers().bytes_copied, 0u);
  const MemoryParts planned = memory_at_peak(*dry), taken = memory_at_peak(*real);
  EXPECT_EQ(planned.parameters, taken.parameters);
  EXPECT_EQ(planned.activations, taken.activations);
  EXPECT_EQ(planned.batches, taken.batches);
  EXPECT_EQ(planned.total(), taken.total());
  // Weights and two moments; gradients of a small model have memory of their own.
  const std::size_t numbers = (kIn + 1 + 2) * kHidden + (kHidden + 1) * kOut;
  EXPECT_GE(planned.parameters, 4 * numbers);
  EXPECT_GE(planned.optimizer, 8 * numbers);
  EXPECT_GE(planned.gradients + planned.activations, 4 * numbers);
  EXPECT_GE(planned.batches, 2 * kBatch * (kIn + 1) * 4);
}

TEST_P(EstimateTest, what_would_not_fit_into_the_machine_is_planned_and_reads_as_zeros) {
  const auto dry = make_engine(GetParam(), {.memory_limit = std::size_t{1} << 50, .dry_run = true});
  const EngineScope scope(*dry);
  const std::int64_t rows = std::min<std::int64_t>(
      std::int64_t{1} << 20, static_cast<std::int64_t>(dry->device().max_allocation_bytes) / (1024 * 4));
  const Array x = empty({rows, 1024}), y = x * 2.0 + 1.0;
  const Array total = sum(y);
  EXPECT_EQ(total.value(), 0.0);
  EXPECT_GE(dry->memory().peak_bytes, static_cast<std::size_t>(rows) * 1024 * 4);
}

TEST_P(EstimateTest, a_limit_holds_in_a_rehearsal_too) {
  const auto dry = make_engine(GetParam(), {.memory_limit = std::size_t{1} << 20, .dry_run = true});
  EXPECT_THROW(train_three_steps(*dry), OutOfMemory);
  const auto roomy = make_engine(GetParam(), {.memory_limit = std::size_t{64} << 20, .dry_run = true});
  EXPECT_NO_THROW(train_three_steps(*roomy));
}

TEST_P(EstimateTest, the_closed_form_counts_what_the_backward_pass_reads) {
  const EngineScope scope(engine());
  const Array w1 = cell(zeros({kIn, kHidden}), "w1"), w2 = cell(zeros({kHidden, kOut}), "w2");
  const Array x = zeros({kBatch, kIn}), label = zeros({kBatch}, i32);
  const Array hidden = tanh(matmul(x, w1));
  const Array loss = cross_entropy(matmul(hidden, w2), label);
  const std::vector<Array> parameters{w1, w2};
  // The hidden layer's result for both of its gradients, and the logits; x is the graph's own.
  const std::size_t kept = kept_for_backward(loss, parameters);
  EXPECT_GE(kept, kBatch * (kHidden + kOut) * 4u);
  EXPECT_LE(kept, kBatch * (2 * kHidden + 2 * kOut + kIn + 1) * 4u);

  const MemoryParts parts = closed_form(
      {.parameters = 100'000, .batch = 10, .sample_bytes = {700, 4}, .slots = 3, .intermediate_bytes = 9000});
  EXPECT_EQ(parts.parameters, 425'984u) << "13/8 of 2^18";
  EXPECT_EQ(parts.gradients, 425'984u);
  EXPECT_EQ(parts.optimizer, 2 * 425'984u);
  EXPECT_EQ(parts.batches, 3 * (8192u + 4096));
  EXPECT_EQ(parts.activations, 90'112u) << "11/8 of 2^16";
  const MemoryParts large =
      closed_form({.parameters = 10'000'000, .intermediate_bytes = 1 << 20, .gradients_then = 1 << 20});
  EXPECT_EQ(large.gradients, 0u) << "those of 4 MiB and more lie among the intermediate values";
  EXPECT_EQ(large.activations, 2u << 20);
}

TEST_P(EstimateTest, live_bytes_are_those_of_the_fullest_moment) {
  if (is_simulated()) GTEST_SKIP() << "nothing is launched but cells";
  const auto dry = make_engine(GetParam(), {.dry_run = true});
  const EngineScope scope(*dry);
  const Array w1 = cell(zeros({kIn, kHidden}), "w1"), w2 = cell(zeros({kHidden, kOut}), "w2");
  const Array x = zeros({kBatch, kIn}), label = zeros({kBatch}, i32);
  eval({x, label});
  const auto updates = [&] {
    const Array loss = cross_entropy(matmul(relu(matmul(x, w1)), w2), label);
    const std::vector<Array> parameters{w1, w2};
    const std::vector<Array> g = gradients(loss, parameters);
    return std::vector<Array>{update(w1, w1 - g[0]), update(w2, w2 - g[1])};
  };
  const LiveBytes live = live_at_peak(updates());
  // The hidden layer for both of its gradients; its own gradient, or the logits, and w2's gradient.
  EXPECT_GE(live.of_a_batch(), kBatch * kHidden * 4u);
  EXPECT_LE(live.of_a_batch(), (2 * kBatch * kHidden + kBatch * kOut + kIn * kHidden + kHidden * kOut) * 4u);
}

TEST(Estimate, work_is_planned_on_an_engine_of_its_own) {
  const MemoryParts parts = plan_memory({}, [] {
    nn::Linear net({.in = 784, .out = 10});
    optim::AdamW adam(net.parameters());
    adam.step(cross_entropy(net(empty({64, 784})), empty({64}, i32)));
  });
  EXPECT_GE(parts.parameters, 7850u * 4);
  EXPECT_GE(parts.optimizer, 7850u * 8);
  EXPECT_GE(parts.other, 64u * 784 * 4);
}

}  // namespace
}  // namespace samebytes::testing
