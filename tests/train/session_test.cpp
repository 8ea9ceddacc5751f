// A Session learns what a loop by hand learns, with the same bytes; it stops early or when it is told to, tells what
// happens in order, writes what the command writes, and refuses what does not go together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <thread>
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
using ::testing::HasSubstr;

class SessionTest : public testing::OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(SessionTest);

TEST_P(SessionTest, learns_and_reports) {
  TrainedNet run(engine(), {.make_optimizer = fast_adam});
  const Report report = run->fit(8);
  EXPECT_EQ(report.stopped_because, Stopped::finished);
  EXPECT_EQ(report.figures.steps, 8 * 8);
  EXPECT_EQ(report.figures.samples, 8 * kSamples);
  EXPECT_EQ(report.epochs, 8);
  EXPECT_GT(report.figures.seconds, 0);
  EXPECT_GT(report.figures.step_ms_p50, 0);
  EXPECT_GE(report.figures.step_ms_p95, report.figures.step_ms_p50);
  EXPECT_GT(report.figures.first_step_seconds, 0);
  EXPECT_GT(report.figures.launches_per_step, 0);
  EXPECT_GT(report.figures.peak_bytes, 0U);
  ASSERT_TRUE(report.train_loss && report.validation);
  EXPECT_LT(*report.train_loss, 1.0);
  EXPECT_EQ(report.validation->find("loss"), report.validation->loss);
  EXPECT_GT(report.validation->find("accuracy").value(), 0.6);
  EXPECT_EQ(report.validation->find("other"), std::nullopt);
  EXPECT_TRUE(run.net.is_training());
}

TEST_P(SessionTest, does_the_same_bytes_as_a_loop_by_hand) {
  TrainedNet fitted(engine(), full_options());
  const Report report = fitted->fit(2);

  TrainedNet stepped(engine(), full_options());
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const data::Batch& batch : stepped.training) EXPECT_TRUE(stepped->step(batch));
    stepped->end_epoch();
  }
  EXPECT_EQ(stepped.weights(), fitted.weights());
  EXPECT_EQ(stepped->report().train_loss, report.train_loss);
  EXPECT_EQ(stepped->validate()->loss, report.validation->loss);

  nn::Sequential net = TrainedNet::make_net(engine());
  optim::AdamW adam(net.parameters(), {.rate = 1e-2, .clip_norm = 1});
  adam.set_schedule(*full_options().schedule.target<optim::Schedule>());
  data::Loader batches(engine(), data::slice(data::digits().train, 0, kSamples),
                       {.batch = kBatch, .shuffle = true, .seed = 7});
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const auto& [image, label] : batches) adam.step(cross_entropy(net(image), label));
  std::vector<float> weights;
  for (const Array& parameter : net.parameters())
    for (const float value : parameter.to_vector<float>()) weights.push_back(value);
  EXPECT_EQ(weights, fitted.weights());
}

TEST_P(SessionTest, counts_its_own_epochs_with_a_loader_that_served_another_run) {
  TrainedNet first(engine(), {.make_optimizer = fast_adam});
  first->fit(2);
  for (const data::Batch& batch : first.training) first->step(batch);  // and a third epoch by hand

  const TemporaryFolder folder;
  const auto checkpoints = [&] {
    return std::make_shared<Checkpoints>(CheckpointsOptions{.folder = folder.string(), .resume = "auto"});
  };
  std::vector<int> epochs;
  SessionOptions options{.checkpoints = checkpoints()};
  options.callbacks.on_epoch = [&](const EpochReport& report) { epochs.push_back(report.epoch); };
  nn::Sequential net = TrainedNet::make_net(engine());
  {
    Session second(engine(), net, {.loss = digits_loss}, first.training, options);
    EXPECT_EQ(second.fit(2).figures.steps, 2 * 8);
  }
  options.checkpoints = checkpoints();
  data::Loader fresh(engine(), data::slice(data::digits().train, 0, kSamples),
                     {.batch = kBatch, .shuffle = true, .seed = 7});
  Session resumed(engine(), net, {.loss = digits_loss}, fresh, options);
  EXPECT_EQ(resumed.fit(3).figures.steps, 3 * 8);
  EXPECT_EQ(epochs, (std::vector{1, 2, 3}));
}

TEST_P(SessionTest, a_second_fit_goes_on_where_the_first_one_ended) {
  TrainedNet whole(engine(), full_options());
  whole->fit(3);

  TrainedNet parts(engine(), full_options());
  EXPECT_EQ(parts->fit(1).figures.steps, 8);
  EXPECT_EQ(parts->fit_steps(8).figures.steps, 8);    // it was there already
  EXPECT_EQ(parts->fit_steps(13).figures.steps, 13);  // in the middle of an epoch
  EXPECT_EQ(parts->fit_steps(16).figures.steps, 16);  // with the last batch of one
  EXPECT_EQ(parts->fit(3).figures.steps, 24);
  EXPECT_EQ(parts.weights(), whole.weights());
}

TEST_P(SessionTest, tells_steps_then_the_epoch_then_the_checkpoint) {
  const TemporaryFolder folder;
  std::vector<std::string> events;
  SessionOptions options = full_options();
  options.checkpoints = std::make_shared<Checkpoints>(CheckpointsOptions{.folder = folder / "states"});
  options.callbacks.on_step = [&](const StepReport& step) {
    events.push_back("step " + std::to_string(step.step));
    EXPECT_EQ(step.epoch, step.step <= 8 ? 1 : 2);
    EXPECT_GT(step.loss, 0);
    EXPECT_GT(step.grad_norm.value(), 0);
    EXPECT_DOUBLE_EQ(step.rate, full_options().schedule(step.step - 1));
  };
  options.callbacks.on_epoch = [&](const EpochReport& epoch) {
    events.push_back("epoch " + std::to_string(epoch.epoch) + " after " + std::to_string(epoch.step));
    EXPECT_TRUE(epoch.validation);
  };
  options.callbacks.on_checkpoint = [&](const Checkpoint& checkpoint) {
    events.push_back("checkpoint " + std::to_string(checkpoint.step));
    EXPECT_TRUE(std::filesystem::exists(checkpoint.path));
  };
  int reports = 0;
  Session* session = nullptr;
  options.callbacks.progress_seconds = 0;
  bool has_begun = false;
  options.schedule = [&](std::int64_t step) {
    // Not where the session is made, before its first step.
    if (session != nullptr && !std::exchange(has_begun, true))
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return full_options().schedule(step);
  };
  options.callbacks.on_progress = [&](const ProgressReport& progress) {
    ++reports;
    EXPECT_EQ(progress.steps, 16);
    EXPECT_EQ(progress.loss, session->train_loss()) << "the mean of the epoch so far";
    if (progress.step <= 8) {
      EXPECT_GT(progress.samples_per_second, static_cast<double>(progress.samples) / progress.seconds)
          << "without the first step, which is slow";
    }
    EXPECT_EQ(progress.seconds_left > 0, progress.step < progress.steps);
  };
  std::vector<std::string> waits;
  options.callbacks.on_wait = [&](const std::string& what) { waits.push_back(what); };
  TrainedNet run(engine(), std::move(options));
  session = run.session.get();
  EXPECT_EQ(run->fit(2).checkpoints.count, 2);
  std::vector<std::string> wanted;
  for (int epoch = 1; epoch <= 2; ++epoch) {
    for (int step = 8 * epoch - 7; step <= 8 * epoch; ++step) wanted.push_back("step " + std::to_string(step));
    wanted.push_back("epoch " + std::to_string(epoch) + " after " + std::to_string(8 * epoch));
    wanted.push_back("checkpoint " + std::to_string(8 * epoch));
  }
  EXPECT_EQ(events, wanted);
  EXPECT_EQ(reports, 8);  // but for the last four steps of each epoch
  const std::vector<std::string> epoch_waits{"testing", "", "writing a checkpoint", ""};
  ASSERT_EQ(waits.size(), 8u);
  EXPECT_TRUE(std::equal(waits.begin(), waits.begin() + 4, epoch_waits.begin()));
}

TEST_P(SessionTest, stops_early_where_the_validation_gets_no_better) {
  SessionOptions options{.make_optimizer = [](std::span<const Array> parameters) -> OptimizerPtr {
                           return std::make_unique<optim::Sgd>(parameters, optim::SgdOptions{.rate = 0});
                         },
                         .early_stopping = EarlyStopping{.patience = 2}};
  TrainedNet run(engine(), options);
  const Report report = run->fit(10);
  EXPECT_EQ(report.stopped_because, Stopped::early);
  EXPECT_EQ(report.epochs, 3);  // the first one is the best
  EXPECT_TRUE(run->is_stopped_early());
  EXPECT_EQ(run->fit(10).epochs, 3);  // and stays so

  options.make_optimizer = fast_adam;
  options.early_stopping = EarlyStopping{.monitor = "accuracy", .patience = 1, .min_delta = 2, .maximize = true};
  EXPECT_EQ(TrainedNet(engine(), options)->fit(10).epochs, 2);  // no accuracy is better by 2

  options.early_stopping = EarlyStopping{.patience = 1};
  EXPECT_EQ(TrainedNet(engine(), options)->fit(2).stopped_because, Stopped::finished);
}

TEST_P(SessionTest, stops_where_it_is_asked_to) {
  TrainedNet run(engine(), {.make_optimizer = fast_adam});
  std::int64_t asked_at = 11;
  SessionOptions options{.make_optimizer = fast_adam};
  Session* session = nullptr;
  options.should_stop = [&] { return session != nullptr && session->steps() == asked_at; };
  TrainedNet stopped(engine(), options);
  session = stopped.session.get();
  const Report report = stopped->fit(3);
  EXPECT_EQ(report.stopped_because, Stopped::asked);
  EXPECT_EQ(report.figures.steps, 11);
  asked_at = -1;
  EXPECT_EQ(stopped->fit(3).stopped_because, Stopped::finished);

  SessionOptions by_callback{.make_optimizer = fast_adam};
  by_callback.callbacks.on_epoch = [&](const EpochReport& epoch) {
    if (epoch.epoch == 1) session->request_stop();
  };
  TrainedNet requested(engine(), by_callback);
  session = requested.session.get();
  EXPECT_EQ(requested->fit(3).epochs, 1);
  EXPECT_EQ(requested->fit(3).epochs, 3);
}

TEST_P(SessionTest, pieces_of_a_batch_make_the_update_of_the_whole) {
  SessionOptions whole_options{.make_optimizer = fast_adam}, piece_options{.make_optimizer = fast_adam};
  piece_options.accumulation.micro_batch = 4;
  TrainedNet whole(engine(), whole_options), pieces(engine(), piece_options);
  whole.net.eval();  // dropout would draw other numbers for each piece
  pieces.net.eval();
  whole->fit_steps(4);
  pieces->fit_steps(4);
  const std::vector<float> a = whole.weights(), b = pieces.weights();
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-3) << i;

  SessionOptions several{.make_optimizer = fast_adam};
  several.accumulation.batches = 3;
  TrainedNet accumulated(engine(), several);
  EXPECT_EQ(accumulated->steps_per_epoch(), 3);
  EXPECT_EQ(accumulated->fit(2).figures.steps, 6);  // the last update of an epoch has two batches
}

TEST_P(SessionTest, trains_in_16_bits) {
  for (const Dtype dtype : {f16, bf16}) {
    SCOPED_TRACE(name_of(dtype));
    TrainedNet run(engine(), {.make_optimizer = fast_adam, .precision = {.dtype = dtype}});
    const Report report = run->fit(6);
    EXPECT_LT(*report.train_loss, 1.5);
    EXPECT_EQ(report.loss_scale.has_value(), dtype == f16);
    EXPECT_EQ(report.skipped_steps.has_value(), dtype == f16);
  }
}

TEST_P(SessionTest, an_adaptive_batch_grows_in_its_session) {
  SessionOptions options{.make_optimizer = fast_adam};
  options.adaptive = AdaptiveBatching{.sizes = {.batch = 32, .max_batch = 64, .every = 1, .patience = 1, .warmup = 1},
                                      .rate = [](std::int64_t) { return 1e-2; }};
  int changes = 0;
  options.callbacks.on_batch = [&](const BatchReport& report) {
    ++changes;
    EXPECT_EQ(report.batch, 64);
  };
  TrainedNet run(engine(), options);
  const Report report = run->fit(12);
  EXPECT_EQ(report.figures.steps, 12 * 8);  // micro-batches
  ASSERT_TRUE(report.adaptive);
  EXPECT_EQ(report.adaptive->batch, 64);
  EXPECT_LT(report.adaptive->updates, 12 * 4);
  EXPECT_EQ(changes, 1);
}

TEST_P(SessionTest, writes_the_lines_and_curves_of_the_command) {
  const TemporaryFolder folder;
  SessionOptions options = full_options();
  options.log = std::make_shared<RunLog>(folder / "run.jsonl", folder / "curves");
  TrainedNet run(engine(), options);
  run->fit(1);
  const std::vector<nlohmann::json> lines = lines_of(folder / "run.jsonl");
  ASSERT_EQ(lines.size(), 11U);
  EXPECT_EQ(lines.front()["event"], "start");
  EXPECT_EQ(lines.front()["steps"], 8);
  for (const char* key : {"step", "epoch", "loss", "rate", "ms", "grad_norm"})
    EXPECT_TRUE(lines[1].contains(key)) << key;
  for (const char* key : {"epoch", "step", "train_loss", "seconds", "stall_fraction", "slots", "peak_bytes",
                          "test_loss", "test_accuracy"})
    EXPECT_TRUE(lines[9].contains(key)) << key;
  EXPECT_EQ(lines.back()["event"], "summary");
  EXPECT_EQ(lines.back()["steps"], 8);
  EXPECT_EQ(TemporaryFolder().count(), 0U);
  EXPECT_FALSE(std::filesystem::is_empty(folder / "curves"));
}

TEST_P(SessionTest, a_loss_that_is_not_finite_ends_the_run_with_its_step) {
  const TemporaryFolder folder;
  SessionOptions options{.make_optimizer = fast_adam};
  options.log = std::make_shared<RunLog>(folder / "run.jsonl");
  const auto loss = [](const Array& logits, const data::Batch& batch) {
    const double factor = batch.step() == 2 ? std::numeric_limits<double>::infinity() : 1.0;
    return cross_entropy(logits, batch[1]) * factor;
  };
  TrainedNet run(engine(), options, loss);
  try {
    run->fit(1);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const StepError& error) {
    EXPECT_EQ(error.step(), 3);
    EXPECT_STREQ(error.what(), "step 3: the loss is inf; EngineOptions::check_nan finds the op that made it");
  }
  const nlohmann::json line = lines_of(folder / "run.jsonl").back();
  EXPECT_EQ(line["event"], "error");
  EXPECT_EQ(line["kind"], "NotFinite");
  EXPECT_EQ(line["step"], 3);

  TrainedNet silent(engine(), {.make_optimizer = fast_adam}, loss);  // nobody reads the losses but the epoch's mean
  EXPECT_THAT(message_of<StepError>([&] { silent->fit(1); }), HasSubstr("step 8: the mean loss of epoch 1 is"));
}

TEST_P(SessionTest, refuses_what_does_not_go_together) {
  const auto make = [&](const SessionOptions& options) { TrainedNet run(engine(), options); };
  EXPECT_ERROR(make({.early_stopping = EarlyStopping{.patience = 0}}), ArgumentError,
               "session: early_stopping: expected patience of 1 or more, got 0");
  EXPECT_ERROR(make({.early_stopping = EarlyStopping{.monitor = "recall"}}), ArgumentError,
               "session: early_stopping: expected monitor of loss, accuracy, got recall");
  EXPECT_ERROR(make({.grad_norm_every = -1}), ArgumentError,
               "session: expected grad_norm_every of 0 (none) or more updates, got -1");
  EXPECT_ERROR(make({.accumulation = {.batches = 0}}), ArgumentError,
               "accumulation: expected 1 batch or more an update, got 0");
  EXPECT_ERROR(make({.precision = {.dtype = f16, .bf16_weights = true}}), ArgumentError,
               "precision: bf16_weights needs dtype bf16, got f16");
  EXPECT_ERROR(make({.precision = {.dtype = i32}}), ArgumentError, "precision: expected f32, f16 or bf16, got i32");
  EXPECT_ERROR(TrainedNet(engine(), {}, {}), ArgumentError, "session: expected a task with a loss, got none");
  EXPECT_ERROR(Checkpoints(CheckpointsOptions{.resume = "auto"}), ArgumentError,
               "checkpoints: resume \"auto\" looks in the folder; name one, or the file to go on from");
  TrainedNet run(engine(), {});
  EXPECT_ERROR(run->fit(-1), ArgumentError, "fit: expected 0 epochs or more, got -1");
  EXPECT_ERROR(run->end_epoch(), ArgumentError, "session: end_epoch: expected a step before it, got none");
  EXPECT_ERROR(run->save(), ArgumentError, "save: expected a session with checkpoints that are written, got none");
}

}  // namespace
}  // namespace samebytes::train
