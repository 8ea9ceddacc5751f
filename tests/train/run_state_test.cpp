// A run that was saved in the middle of an epoch and loaded into new objects goes on with the same bytes; files that
// are damaged or of another run are refused; a folder keeps the newest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "runtime/faults.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/files.h"
#include "train/run_parts.h"

namespace samebytes {
namespace {

using testing::get;
using testing::put;
using testing::TemporaryFolder;

constexpr std::int64_t kSamples = 50, kBatch = 8;  // seven batches in an epoch, the last one of two
constexpr int kMicroBatches = 2;

// Everything that a run can have, in f16: dropout, batch norm, augmentation, hard examples, a scaler, accumulation over
// two batches, averages, a plateau.
struct FullRun {
  Engine& engine;
  nn::Sequential net;
  std::unique_ptr<optim::AdamW> adam;
  optim::GradScaler scaler{{.init_scale = 1024, .growth_interval = 3}};
  std::unique_ptr<optim::Ema> ema;
  std::unique_ptr<optim::Accumulator> sums;
  optim::Plateau plateau{{.rate = 1e-2, .patience = 0}};
  std::shared_ptr<data::HardExamples> hard = std::make_shared<data::HardExamples>(kSamples);
  std::unique_ptr<data::Loader> batches;
  Mean loss;
  Accuracy accuracy;
  std::int64_t seen = 0;
  double sum = 0;
  std::string note;
  RunState state;

  explicit FullRun(Engine& engine_, const std::string& batch_word = "8")
      : engine(engine_),
        net(nn::Conv2d({.in = 1, .out = 4, .kernel = 3, .pad = 1}), nn::BatchNorm({.features = 4}), nn::Relu(),
            nn::Flatten(), nn::Dropout(0.3), nn::Linear({.in = 256, .out = 10})),
        state(engine_) {
    const auto parameters = net.parameters();
    keep_working_copies(parameters, f16);
    adam = std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.rate = 1e-2, .clip_norm = 1});
    ema = std::make_unique<optim::Ema>(*adam, optim::EmaOptions{.decay = 0.9, .warmup = true});
    sums = std::make_unique<optim::Accumulator>(*adam);
    data::LoaderOptions options{.batch = kBatch, .seed = 5, .transforms = {data::shift({.pixels = 1})}};
    options.sampler = hard;
    batches = std::make_unique<data::Loader>(engine, data::with_index(data::slice(data::digits().train, 0, kSamples)),
                                             options);
    state.expect("batch", batch_word);
    state.add("model", net);
    state.add("optimizer", *adam);
    state.add("scaler", scaler);
    state.add("ema", *ema);
    state.add("sums", *sums);
    state.add("plateau", plateau);
    state.add("hard", *hard);
    state.add("batches", *batches);
    state.add("loss", loss);
    state.add("accuracy", accuracy);
    state.add("seen", seen);
    state.add("sum", sum);
    state.add(
        "note", [this] { return note; }, [this](const std::string& text) { note = text; });
  }

  void step(const data::Batch& batch) {
    const std::vector<std::int32_t> indices = batch["index"].to_vector<std::int32_t>();
    Array logits, mean;
    {
      const Autocast scope({.dtype = f16});
      logits = net(batch[0]);
      mean = cross_entropy(logits, batch[1]);
    }
    sums->add(scaler.scale(mean), static_cast<double>(batch.samples()));
    loss.add(mean, static_cast<double>(batch.samples()));
    accuracy.add(logits, batch[1]);
    std::vector<float> losses;
    for (const std::int32_t index : indices) losses.push_back(static_cast<float>((index * 7 + seen) % 11));
    hard->feed(indices, losses);
    if (++seen % kMicroBatches == 0) {
      sums->step(scaler);
      scaler.update();
      ema->update();
      adam->set_rate(plateau.rate());
    }
    if (seen % 5 == 0) plateau.step(1.0 / static_cast<double>(seen % 3 + 1));
    sum += 1.0 / static_cast<double>(seen);
    note = "after " + std::to_string(seen);
  }

  // Up to `end` batches in all; calls `between` after each.
  void train(
      std::int64_t end, const std::function<void()>& between = [] {}) {
    while (seen < end)
      for (const data::Batch& batch : *batches) {
        step(batch);
        between();
        if (seen == end) break;
      }
  }
};

void expect_same_bytes(const RunSnapshot& a, const RunSnapshot& b) {
  EXPECT_EQ(a.description, b.description);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
    EXPECT_EQ(a.tensors[i].values.bytes, b.tensors[i].values.bytes) << a.tensors[i].name;
  }
}

class RunStateTest : public testing::OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(RunStateTest);

// One engine for all, so that its plans are made once; processes of their own are what tests/cli has.
TEST_P(RunStateTest, goes_on_bit_for_bit_from_any_batch) {
  constexpr std::int64_t kEnd = 14;
  const TemporaryFolder folder;
  const auto engine = testing::make_engine(GetParam(), {.seed = 3});
  const EngineScope scope(*engine);
  const auto fresh = [&] { return std::make_unique<FullRun>(*engine); };
  auto run = fresh();
  // After a micro-batch, after an update, after the last batch of an epoch, in the next one.
  run->train(kEnd, [&] {
    if (run->seen == 3 || run->seen == 4 || run->seen == 7 || run->seen == 11)
      run->state.save(folder / std::to_string(run->seen));
  });
  const RunSnapshot whole = run->state.snapshot();
  for (const char* name : {"3", "4", "7", "11"}) {
    SCOPED_TRACE(name);
    run = fresh();
    if (name[0] == '4') run->train(2);  // also over what another run left behind
    const RunOrigin origin = run->state.load(folder / name);
    EXPECT_EQ(origin, (RunOrigin{engine->device().name, engine->tuning().hash}));
    EXPECT_EQ(std::to_string(run->seen), name);
    EXPECT_EQ(run->note, std::string("after ") + name);
    EXPECT_EQ(run_text(folder / name, "note"), run->note);
    EXPECT_EQ(run_text(folder / name, "seen"), std::nullopt);
    EXPECT_EQ(run_text(folder / name, "other"), std::nullopt);
    run->train(kEnd);
    expect_same_bytes(run->state.snapshot(), whole);
  }
}

TEST_P(RunStateTest, a_snapshot_goes_on_in_a_new_engine_after_a_failed_launch) {
  RunSnapshot before, wanted;
  {
    const auto engine = testing::make_engine(GetParam(), {.seed = 3});
    const EngineScope scope(*engine);
    FullRun run(*engine);
    run.train(4);
    before = run.state.snapshot();
    const data::LoaderPlace place = run.batches->place();
    run.batches->seek(place.epoch, place.step);
    run.train(6);
    wanted = run.state.snapshot();
    {
      detail::MutexLock lock(detail::faults().mutex);
      detail::faults().failing_op = "conv2d";
      detail::faults().fail_launch = true;
    }
    const auto fail = [&] {
      run.train(8);
      engine->wait();
    };
    EXPECT_THROW(fail(), DeviceError);
    detail::faults().fail_launch = false;
  }
  const auto engine = testing::make_engine(GetParam(), {.seed = 3});
  const EngineScope scope(*engine);
  FullRun run(*engine);
  run.state.restore(before);
  run.train(6);
  expect_same_bytes(run.state.snapshot(), wanted);
}

TEST_P(RunStateTest, refuses_what_is_of_another_run_and_changes_nothing) {
  const TemporaryFolder folder;
  FullRun run(engine());
  run.train(2);
  const std::string file = folder / "run";
  run.state.save(file);
  const std::string begin = "run state: " + file + ": ";

  FullRun other(engine(), "16");
  const RunSnapshot before = other.state.snapshot();
  EXPECT_ERROR(other.state.load(file), ArgumentError, (begin + "batch is 8 there and 16 here").c_str());
  expect_same_bytes(other.state.snapshot(), before);

  const auto loaded = [&](nn::Module& net, const char* name) {
    RunState state(engine());
    state.expect("batch", "8");
    state.add(name, net);
    state.load(file);
  };
  nn::Sequential small(nn::Linear({.in = 2, .out = 3}));
  EXPECT_ERROR(loaded(small, "model"), ArgumentError, (begin + "it has optimizer, this run has none").c_str());
  EXPECT_ERROR(loaded(small, "other"), ArgumentError, (begin + "it has model, this run has none").c_str());
  RunState alone(engine()), less(engine());
  alone.add("model", small);
  alone.save(folder / "small");
  nn::Sequential large(nn::Linear({.in = 2, .out = 4}));
  less.add("model", large);
  EXPECT_ERROR(
      less.load(folder / "small"), ArgumentError,
      ("run state: " + (folder / "small") + ": model/0.weight is f32 [3, 2] there and f32 [4, 2] here").c_str());
  std::int64_t number = 0;
  EXPECT_ERROR(less.add("model", number), ArgumentError, "run state: model was added twice");
  EXPECT_ERROR(less.add("a/b", number), ArgumentError, "run state: a name is not empty and has no \"/\", got 'a/b'");
  const optim::EmaScope averages(*run.ema);
  EXPECT_ERROR(run.state.save(file), ArgumentError, "run state: ema: the averages are swapped in; swap them back");
}

// On the host alone from here on, with one array.
struct SmallRun {
  nn::Parameter values{cell(array({1, 2, 3}), "values")};
  struct Net final : nn::Module {
    nn::Parameter* values = nullptr;
    Array forward(const Array& x) override { return x; }
    void visit(nn::Visitor& v) override { v.parameter("values", *values); }
  } net;
  double best = -std::numeric_limits<double>::infinity();
  RunState state{Engine::current()};
  SmallRun() {
    net.values = &values;
    state.add("net", net);
    state.add("best", best);
  }
};

class CheckpointFolderTest : public testing::OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(CheckpointFolderTest);

TEST_P(CheckpointFolderTest, any_damage_is_found) {
  const TemporaryFolder folder;
  SmallRun run;
  const std::string file = folder / "run", broken = folder / "broken";
  run.state.save(file);
  check_run_file(file);
  run.best = 1;
  run.state.load(file);
  EXPECT_EQ(run.best, -std::numeric_limits<double>::infinity());
  const std::string whole = get(file);
  constexpr std::size_t kStride = 3;  // every third byte, and all of the values at the end
  for (std::size_t place = 0; place < whole.size(); place += place + 16 < whole.size() ? kStride : 1) {
    std::string text = whole;
    text[place] = static_cast<char>(text[place] ^ 1);
    put(broken, text);
    // A word that nobody reads may change, such as the padding of the header: then the state is as it was.
    try {
      run.state.load(broken);
      EXPECT_EQ(run.values.to_vector<float>(), (std::vector<float>{1, 2, 3})) << place;
    } catch (const Error&) {
    }
    put(broken, whole.substr(0, place));
    EXPECT_THROW(check_run_file(broken), IoError) << place;
  }
  std::string text = whole;
  text.back() = static_cast<char>(text.back() ^ 1);
  put(broken, text);
  EXPECT_ERROR(
      run.state.load(broken), IoError,
      ("run state: " + broken + ": expected 'net/values' as its checksum says, found other bytes: the file is damaged")
          .c_str());
  io::save(folder / "net", run.net);
  EXPECT_ERROR(check_run_file(folder / "net"), IoError,
               ("run state: " + (folder / "net") + ": expected the format \"samebytes run 1\", found \"pt\"").c_str());
}

TEST_P(CheckpointFolderTest, keeps_the_newest_and_passes_over_what_is_damaged) {
  const TemporaryFolder place;
  SmallRun run;
  const CheckpointFolder folder(place / "a/b", {.keep = 2});
  EXPECT_FALSE(folder.newest().checkpoint);
  for (const std::int64_t step : {5, 10, 15}) folder.save(run.state, step);
  EXPECT_EQ(folder.list().size(), 2u);
  EXPECT_EQ(folder.list().front().step, 10);
  EXPECT_EQ(folder.newest().checkpoint->path,
            (std::filesystem::path(place / "a/b") / "checkpoint-000000015.safetensors"));
  // What a killed program left: a cut file, and those that were being written by a process that is gone. Another
  // machine may be writing the one that is young.
  const std::string last = folder.newest().checkpoint->path, young = last + ".tmp-4194305-0";
  const std::string old = last + ".tmp-4194305-1", foreign = place / "a/b/notes.tmp-4194305-1";
  for (const std::string& path : {young, old, foreign}) put(path, "half");
  for (const std::string& path : {old, foreign})
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_EQ(folder.list().size(), 2u);
  put(last, get(last).substr(0, 100));
  const CheckpointFolder::Newest newest = folder.newest();
  EXPECT_EQ(newest.checkpoint->step, 10);
  ASSERT_EQ(newest.damaged.size(), 1u);
  EXPECT_NE(newest.damaged[0].find(last), std::string::npos) << newest.damaged[0];
  // Checksums and description are right, and a part of it is not.
  samebytes::detail::write_run_file(last, {}, R"({"device": "", "tuning": "", "random_counter": 0, "expect": {},
"parts": {"a": {"text": 7}, "b": 7, "c": {"text": "x"}}})");
  EXPECT_THAT(message_of<IoError>([&] { run_text(last, "a"); }), ::testing::HasSubstr(last + ": expected values"));
  EXPECT_FALSE(run_text(last, "b"));
  EXPECT_EQ(run_text(last, "c"), "x");
  // Whole checksums around a description that says nothing.
  for (const char* description : {"{}", "[1]", "{\"device\": 7}", "{", "1e999"}) {
    samebytes::detail::write_run_file(last, {}, description);
    EXPECT_THROW(check_run_file(last), IoError) << description;
    EXPECT_EQ(folder.newest().checkpoint->step, 10) << description;
  }
  // The run goes on from 10; the damaged one is neither counted nor in the way.
  folder.save(run.state, 12);
  folder.save(run.state, 14);
  EXPECT_FALSE(std::filesystem::exists(old));
  for (const std::string& path : {young, foreign}) EXPECT_TRUE(std::filesystem::exists(path)) << path;
  std::vector<std::int64_t> steps;
  for (const Checkpoint& file : folder.list()) steps.push_back(file.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{12, 14, 15}));
  folder.save(run.state, 15);
  EXPECT_EQ(folder.newest().checkpoint->step, 15);
  EXPECT_ERROR(CheckpointFolder(place / "a", {.keep = -1}), ArgumentError,
               "checkpoint folder: keep must be 0 or more, got -1");
  EXPECT_THROW(CheckpointFolder("/dev/null/x"), IoError);
}

}  // namespace
}  // namespace samebytes
