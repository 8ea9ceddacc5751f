#include "samebytes/train/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/environment.h"
#include "support/errors.h"
#include "train/session_runs.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using train::FitOptions;
using train::MemoryFit;
using train::StepSettings;

// A step whose memory is a formula: each technique takes its part away.
std::size_t formula(const StepSettings& step) {
  if (step.release_gradients && step.micro_batch > 0) throw ArgumentError("released gradients cannot be added up");
  const std::int64_t batch = step.micro_batch > 0 ? step.micro_batch : step.batch;
  std::size_t bytes = 1000 + 10 * static_cast<std::size_t>(batch);
  if (!step.release_gradients) bytes += 300;
  if (step.moments == bf16) bytes -= 200;
  if (step.recompute > 0.05) bytes -= 20;
  return step.precision == bf16 ? bytes / 2 : bytes;
}

TEST(FitMemory, a_step_that_fits_stays_as_it_is) {
  const MemoryFit fit = train::fit_memory({.asked = {.batch = 16}, .budget = 1460}, formula);
  EXPECT_EQ(fit.techniques, "nothing");
  EXPECT_EQ(fit.planned, 1460u);
  EXPECT_EQ(fit.step.micro_batch, 0);
  EXPECT_FALSE(fit.step.release_gradients);
}

TEST(FitMemory, techniques_come_in_order_and_no_further_than_needed) {
  const MemoryFit first = train::fit_memory({.asked = {.batch = 16}, .budget = 1450}, formula);
  EXPECT_EQ(first.techniques, "recomputation of pointwise values");
  const MemoryFit second = train::fit_memory({.asked = {.batch = 16}, .budget = 1385}, formula);
  EXPECT_EQ(second.step.micro_batch, 8);
  EXPECT_EQ(second.techniques, "micro-batches of 8");
}

TEST(FitMemory, what_is_used_already_or_excluded_is_not_varied) {
  const MemoryFit released = train::fit_memory({.asked = {.batch = 16, .micro_batch = 4}, .budget = 1330}, formula);
  EXPECT_EQ(released.techniques, "recomputation of pointwise values");
  EXPECT_EQ(released.step.micro_batch, 4);
  const MemoryFit whole = train::fit_memory({.asked = {.batch = 16}, .budget = 1200, .may_cut_batch = false}, formula);
  EXPECT_EQ(whole.techniques, "gradient release");
}

TEST(FitMemory, what_changes_results_must_be_allowed) {
  FitOptions options{.asked = {.batch = 16}, .budget = 800};
  try {
    train::fit_memory(options, formula);
    FAIL() << "expected OutOfMemory";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.budget(), 800u);
    EXPECT_THAT(error.what(), HasSubstr("FitOptions::budget 800 bytes: the smallest step that there is needs "));
    EXPECT_THAT(error.what(), HasSubstr("; allows_moments and allows_precision makes that "));
  }
  options.allows_precision = true;
  const MemoryFit fit = train::fit_memory(options, formula);
  EXPECT_EQ(fit.step.precision, bf16);
  EXPECT_LE(fit.planned, 800u);
}

TEST(FitMemory, a_message_says_the_programs_own_names) {
  FitOptions options{.asked = {.batch = 2}, .budget = 10, .clips_by_norm = true};
  const auto message = [&] { return message_of<OutOfMemory>([&] { train::fit_memory(options, formula); }); };
  EXPECT_THAT(message(),
              HasSubstr("gradient release does not go with clipping by norm; a clip_norm of 0 turns that off"));
  options.names = {.budget = "--limit", .no_clipping = "--clip 0"};
  EXPECT_THAT(message(), HasSubstr("--limit 10 bytes: "));
  EXPECT_THAT(message(), HasSubstr("; --clip 0 turns that off"));
}

TEST(FitMemory, the_largest_batch_is_a_multiple_and_counts_what_lies_beside_the_engine) {
  const FitOptions options{.budget = 1300 + 10 * 100, .finds_batch = true, .multiple = 8};
  const MemoryFit fit = train::fit_memory(options, formula);
  EXPECT_EQ(fit.step.batch, 96);
  EXPECT_EQ(fit.planned, 1300u + 960u);
  FitOptions beside = options;
  beside.bytes_per_sample = 10;
  EXPECT_EQ(train::fit_memory(beside, formula).step.batch, 48);
  FitOptions few = options;
  few.most_batch = 20;
  EXPECT_EQ(train::fit_memory(few, formula).step.batch, 16);
  FitOptions nothing = options;
  nothing.budget = 100;
  EXPECT_THAT(message_of<OutOfMemory>([&] { train::fit_memory(nothing, formula); }),
              HasSubstr("a step of one sample needs 1.31 kB (1310 bytes), there are 100 bytes; a fixed batch"));
}

TEST(FitMemory, a_budget_is_needed) {
  EXPECT_ERROR(train::fit_memory({}, formula), ArgumentError, "fit_memory: expected a budget above 0 bytes, got 0");
}

class FitTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(FitTest);

// What a rehearsal plans for a Session is what the Session takes, to the byte.
TEST_P(FitTest, a_session_takes_what_its_rehearsal_planned) {
  const data::DatasetPtr set = data::slice(data::digits().train, 0, 128);
  const auto train_with = [](Engine& engine, const data::DatasetPtr& samples, const StepSettings& step) {
    nn::Sequential net = train::TrainedNet::make_net(engine);
    data::Loader batches(engine, samples, {.batch = step.batch, .workers = 0});
    train::Session session(
        engine, net, {.loss = train::digits_loss}, batches,
        {.make_optimizer = [&](std::span<const Array> parameters) -> train::OptimizerPtr {
           return std::make_unique<optim::AdamW>(
               parameters, optim::AdamWOptions{.release_gradients = step.release_gradients, .moments = step.moments});
         },
         .precision = {.dtype = step.precision, .bf16_weights = step.bf16_weights},
         .accumulation = {.micro_batch = step.micro_batch}});
    session.fit_steps(2);
  };
  const Environment personality("SAMEBYTES_PERSONALITY", name_of(GetParam().personality));
  const train::PeakOf peak = train::rehearsal(engine().options(), [&](Engine& engine, const StepSettings& step) {
    train_with(engine, train::hollow(set), step);
  });
  const std::size_t whole = peak({.batch = 64});
  const MemoryFit fit = train::fit_memory(
      {.asked = {.batch = 64}, .budget = whole - 4096, .allows_moments = true, .allows_precision = true}, peak);
  EXPECT_NE(fit.techniques, "nothing");
  EXPECT_LE(fit.planned, whole - 4096);
  const auto real = make_engine(GetParam(), {.recompute = fit.step.recompute});
  const EngineScope scope(*real);
  train_with(*real, set, fit.step);
  EXPECT_EQ(real->memory().peak_bytes, fit.planned);
}

TEST_P(FitTest, a_hollow_set_has_the_fields_behind_the_transforms) {
  const data::DatasetPtr set = data::digits().train;
  const data::DatasetPtr empty = train::hollow(set, {data::normalise({.mean = {1}})}, 12);
  EXPECT_EQ(empty->size(), 12);
  EXPECT_EQ(train::hollow(set)->size(), set->size());
  ASSERT_EQ(empty->fields().size(), set->fields().size());
  const auto engine = make_engine(GetParam(), {.dry_run = true});
  const EngineScope scope(*engine);
  data::Loader batches(*engine, empty, {.batch = 12, .workers = 0});
  for (const data::Batch& batch : batches)
    for (const float value : batch[0].to_vector<float>()) EXPECT_EQ(value, 0.0f);
}

}  // namespace
}  // namespace samebytes::testing
