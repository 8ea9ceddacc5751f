// A Session that goes on where another one was interrupted, saved or failed ends with the bytes of a run that nothing
// happened to; a state of another run is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/files.h"
#include "train/session_runs.h"

namespace samebytes::train {
namespace {

using samebytes::testing::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SessionResumeTest : public testing::OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(SessionResumeTest);

// Interrupted in the middle of an epoch and resumed by a new Session: the bytes of a run that was not.
TEST_P(SessionResumeTest, goes_on_bit_for_bit_after_an_interrupt) {
  struct Case {
    const char* name;
    Dtype dtype;
    std::int64_t batches;
    bool adapts;
  };
  for (const Case& one : {Case{"f32", f32, 1, false}, Case{"f16", f16, 1, false}, Case{"accumulated", f32, 3, false},
                          Case{"adaptive", f32, 1, true}}) {
    SCOPED_TRACE(one.name);
    const TemporaryFolder folder;
    std::vector<double> losses;
    const auto options_of = [&](const std::string& resume) {
      SessionOptions options = full_options();
      options.precision.dtype = one.dtype;
      options.accumulation.batches = one.batches;
      if (one.adapts) {
        options.schedule = {};
        options.adaptive = AdaptiveBatching{.sizes = {.batch = 32, .max_batch = 64, .every = 2, .patience = 1},
                                            .rate = [](std::int64_t) { return 1e-2; }};
      } else {
        options.plateau = optim::PlateauOptions{.rate = 1e-2, .factor = 0.5, .patience = 0};
        options.schedule = {};
      }
      options.early_stopping = EarlyStopping{.patience = 5};
      if (!resume.empty())
        options.checkpoints = std::make_shared<Checkpoints>(
            CheckpointsOptions{.folder = folder / "states", .every = 1, .keep = 2, .resume = resume});
      options.log = std::make_shared<RunLog>(folder / (resume.empty() ? "whole.jsonl" : "parts.jsonl"), "", true);
      options.callbacks.on_step = [&](const StepReport& step) { losses.push_back(step.loss); };
      return options;
    };
    TrainedNet whole(engine(), options_of(""));
    const Report report = whole->fit(2);
    const std::vector<double> wanted = std::exchange(losses, {});
    {
      SessionOptions options = options_of("auto");
      int left = 5;
      options.should_stop = [&] { return --left <= 0; };
      EXPECT_EQ(TrainedNet(engine(), options)->fit(2).stopped_because, Stopped::asked);
    }
    losses.clear();
    engine().set_random_counter(999);
    TrainedNet resumed(engine(), options_of("auto"));
    const Report rest = resumed->fit(2);
    ASSERT_TRUE(rest.resumed_from);
    EXPECT_LT(*rest.resumed_from, report.figures.steps);
    EXPECT_GT(*rest.resumed_from, 0);
    EXPECT_EQ(resumed.weights(), whole.weights());
    EXPECT_EQ(rest.train_loss, report.train_loss);
    EXPECT_EQ(rest.validation->loss, report.validation->loss);
    EXPECT_EQ(rest.figures.steps, report.figures.steps);
    EXPECT_EQ(rest.figures.samples, report.figures.samples);
    EXPECT_EQ(losses, std::vector<double>(wanted.begin() + *rest.resumed_from, wanted.end()));
    // Each step and epoch stands in the log once.
    std::vector<double> logged;
    std::vector<std::string> others;
    for (const nlohmann::json& line : lines_of(folder / "parts.jsonl")) {
      if (line["event"] == "step")
        logged.push_back(line["loss"]);
      else if (line["event"] != "batch")
        others.push_back(line["event"]);
    }
    EXPECT_EQ(logged, wanted);
    EXPECT_THAT(others, ElementsAre("start", "resume", "epoch", "epoch", "summary"));
  }
}

TEST_P(SessionResumeTest, a_state_of_another_run_is_refused) {
  const TemporaryFolder folder;
  const auto checkpoints = [&](const std::string& resume) {
    return std::make_shared<Checkpoints>(CheckpointsOptions{.folder = folder / "states", .resume = resume});
  };
  {
    TrainedNet run(engine(), {.checkpoints = checkpoints("auto")});
    run->state().expect("width", "32");
    run->fit(1);
  }
  TrainedNet other(engine(), {.checkpoints = checkpoints("auto")});
  other->state().expect("width", "64");
  EXPECT_THAT(message_of<ArgumentError>([&] { other->fit(1); }), HasSubstr("width is 32 there and 64 here"));
  EXPECT_THAT(message_of<ArgumentError>([&] { checkpoints(""); }), HasSubstr("has the checkpoints of an earlier run"));
}

TEST_P(SessionResumeTest, a_loop_by_hand_saves_and_goes_on) {
  const TemporaryFolder folder;
  TrainedNet whole(engine(), full_options());
  whole->fit(1);
  const auto options = [&](const std::string& resume) {
    SessionOptions result = full_options();
    result.checkpoints =
        std::make_shared<Checkpoints>(CheckpointsOptions{.folder = folder / "states", .every = 100, .resume = resume});
    return result;
  };
  {
    TrainedNet first(engine(), options(""));
    EXPECT_FALSE(first->resume());
    for (const data::Batch& batch : first.training) {
      first->step(batch);
      if (first->steps() == 3) break;
    }
    first->save();
    EXPECT_EQ(first->report().checkpoints.count, 1);
    EXPECT_THAT(message_of<ArgumentError>([&] { first->resume(); }),
                HasSubstr("expected a call before the first step"));
  }
  TrainedNet second(engine(), options("auto"));
  EXPECT_EQ(second->resume().value().step, 3);
  for (const data::Batch& batch : second.training) second->step(batch);
  second->end_epoch();
  EXPECT_EQ(second.weights(), whole.weights());
}

TEST_P(SessionResumeTest, a_state_in_memory_is_where_the_next_session_begins) {
  TrainedNet whole(engine(), full_options());
  whole->fit(2);
  SessionOptions options = full_options();
  options.checkpoints = std::make_shared<Checkpoints>(CheckpointsOptions{.every = 5, .in_memory = true});
  bool fails = true;
  options.callbacks.on_epoch = [&](const EpochReport&) {
    if (std::exchange(fails, false)) throw Error("a device that was lost");
  };
  EXPECT_EQ(message_of<Error>([&] { TrainedNet(engine(), options)->fit(2); }), "a device that was lost");
  TrainedNet again(engine(), options);
  const Report report = again->fit(2);
  EXPECT_EQ(report.resumed_from, 5);
  EXPECT_EQ(again.weights(), whole.weights());
}

TEST_P(SessionResumeTest, an_accumulation_that_waits_is_not_saved) {
  const TemporaryFolder folder;
  SessionOptions options = full_options();
  options.accumulation.batches = 3;
  options.checkpoints = std::make_shared<Checkpoints>(CheckpointsOptions{.folder = folder / "states"});
  TrainedNet run(engine(), options);
  for (const data::Batch& batch : run.training) {
    const bool is_updated = run->step(batch).has_value();
    EXPECT_EQ(is_updated, batch.step() % 3 == 2);
    if (is_updated) break;
    EXPECT_ERROR(run->save(), ArgumentError,
                 "save: expected a call between two updates, got one while an accumulation waits for batches");
  }
  run->save();
}

}  // namespace
}  // namespace samebytes::train
