#include "samebytes/train/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using train::SweepOptions;
using train::SweepReport;
using train::SweepRow;
using train::SweepSize;
using train::SweepTraining;

class SweepBatchesTest : public OnDevice {
 protected:
  SweepBatchesTest() {
    options_.training_samples = set_.train->size();
    options_.make_engine = [] { return make_engine(GetParam(), {.seed = 3}); };
  }
  SweepTraining training_of(const SweepSize& size) const {
    SweepTraining training{
        .net = std::make_unique<nn::Sequential>(nn::Flatten(), nn::Linear({.in = 64, .out = 256}), nn::Relu(),
                                                nn::Linear({.in = 256, .out = 10})),
        .task = {.loss = [](const Array& logits, const data::Batch& batch) { return cross_entropy(logits, batch[1]); }},
        .training = set_.train,
        .validation = data::slice(set_.test, 0, 100)};
    const double rate = 0.005 * std::sqrt(static_cast<double>(size.batch) / 32);
    training.make_optimizer = [rate](std::span<const Array> parameters) {
      return std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.rate = rate});
    };
    training.rate = rate;
    return training;
  }
  SweepReport sweep() const {
    return train::sweep_batches(options_, [&](Engine&, const SweepSize& size) { return training_of(size); });
  }
  const data::Split set_ = data::digits();
  SweepOptions options_;
};
SAMEBYTES_ON_EVERY_DEVICE(SweepBatchesTest);

TEST_P(SweepBatchesTest, each_size_has_a_row_and_the_target_comes_from_the_reference) {
  options_.batches = {32, 8, 64, 8};
  options_.steps = 24;
  options_.reference = 60;
  std::vector<std::int64_t> told;
  std::int64_t progress = 0;
  options_.on_row = [&](const SweepRow& row) { told.push_back(row.batch); };
  options_.on_progress = [&](const train::SweepProgress& now) {
    EXPECT_EQ(now.sizes, 3u);
    EXPECT_EQ(now.steps, 24);
    ++progress;
  };
  std::set<std::string> waits;
  options_.on_wait = [&](const std::string& what) { waits.insert(what); };
  const SweepReport report = sweep();
  EXPECT_THAT(told, ElementsAre(64, 8, 32)) << "the reference is first";
  EXPECT_GT(progress, 24);
  for (const char* what :
       {"batch 8: compiling kernels", "batch 8: testing", "batch 8: measuring the noise of the gradient", ""})
    EXPECT_TRUE(waits.contains(what)) << what;
  ASSERT_EQ(report.rows.size(), 3u);
  EXPECT_EQ(report.reference, 64);
  EXPECT_EQ(report.target_steps, 24);
  EXPECT_EQ(report.rows[0].batch, 8);
  EXPECT_EQ(report.rows[2].batch, 64);
  for (const SweepRow& row : report.rows) {
    EXPECT_EQ(row.trouble, "");
    EXPECT_LE(row.samples, row.steps * row.batch) << "the last batch of an epoch is incomplete";
    EXPECT_GT(row.samples, (row.steps - 2) * row.batch);
    EXPECT_GE(row.steps, 20);
    EXPECT_GT(row.samples_per_second(), 0);
    EXPECT_GT(row.peak_bytes, row.activation_bytes);
    EXPECT_GT(row.covariance_trace, 0);
    EXPECT_LT(row.validation_loss, 2.3) << "it learnt something";
    EXPECT_DOUBLE_EQ(row.rate, 0.005 * std::sqrt(static_cast<double>(row.batch) / 32));
  }
  EXPECT_GT(report.rows[2].activation_bytes, report.rows[0].activation_bytes);
  ASSERT_TRUE(report.rows[2].target);
  EXPECT_LE(report.rows[2].target->steps, 12) << "in the first half";
  EXPECT_EQ(report.rows[2].target->validation_loss, report.target_loss);
  EXPECT_GT(report.advice.batch, 0);
  EXPECT_FALSE(report.advice.reason.empty());
}

TEST_P(SweepBatchesTest, a_size_ends_at_a_given_target_and_repeats) {
  options_.batches = {16};
  options_.steps = 200;
  options_.target_loss = 1.0;
  const SweepReport first = sweep(), second = sweep();
  ASSERT_TRUE(first.rows[0].target);
  EXPECT_FALSE(first.target_steps);
  EXPECT_LT(first.rows[0].steps, 200);
  EXPECT_EQ(first.rows[0].target->steps, second.rows[0].target->steps);
  EXPECT_EQ(first.rows[0].validation_loss, second.rows[0].validation_loss);
  EXPECT_EQ(first.rows[0].noise_scale, second.rows[0].noise_scale);
}

TEST_P(SweepBatchesTest, what_one_size_cannot_do_does_not_end_the_others) {
  options_.batches = {8, 16};
  options_.steps = 4;
  options_.target_loss = 0;
  const SweepReport report = train::sweep_batches(options_, [&](Engine&, const SweepSize& size) {
    SweepTraining training = training_of(size);
    if (size.batch == 8) {
      training.task.loss = [](const Array&, const data::Batch&) -> Array {
        throw ArgumentError("this model does not like eight");
      };
    }
    return training;
  });
  EXPECT_EQ(report.rows[0].trouble, "this model does not like eight");
  EXPECT_EQ(report.rows[0].steps, 0);
  EXPECT_EQ(report.rows[1].trouble, "");
  EXPECT_EQ(report.rows[1].steps, 4);
  EXPECT_EQ(report.advice.batch, 16);
}

TEST_P(SweepBatchesTest, stops_when_asked) {
  options_.batches = {8, 16};
  int asked = 0;
  options_.should_stop = [&] { return ++asked > 5; };
  const SweepReport report = sweep();
  ASSERT_EQ(report.rows.size(), 1u);
  EXPECT_LT(report.rows[0].steps, 10);
}

TEST_P(SweepBatchesTest, refuses_what_is_out_of_range) {
  EXPECT_ERROR(sweep(), ArgumentError, "sweep_batches: expected at least one batch size, got none");
  options_.batches = {8, 0};
  EXPECT_THAT(message_of<ArgumentError>([&] { sweep(); }),
              HasSubstr("expected batches from 1 to the 1437 training samples, got 0"));
  options_.batches = {2000};
  EXPECT_THAT(message_of<ArgumentError>([&] { sweep(); }), HasSubstr("got 2000"));
  options_.batches = {8};
  options_.steps = 0;
  EXPECT_THAT(message_of<ArgumentError>([&] { sweep(); }), HasSubstr("expected steps of 1 or more, got 0"));
}

}  // namespace
}  // namespace samebytes::testing
