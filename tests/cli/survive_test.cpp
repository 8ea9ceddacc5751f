// Runs that survive: killed, interrupted, or after a device error, they go on and end with the bytes and the log of a
// run that nothing happened to.
#include <gmock/gmock.h>

#include "cli/killed_run.h"
#include "cli/survive.h"
#include "support/errors.h"
#include "support/process.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

// Dropout, batch norm and shifted images; it ends in the middle of its third epoch.
const Words kRun = {"train", "digits", "--steps", "57", "--quiet"};

std::vector<nlohmann::json> events_in(const std::string& log, const std::string& event) {
  std::vector<nlohmann::json> found;
  for (const nlohmann::json& line : lines_of(log))
    if (line["event"] == event) found.push_back(line);
  return found;
}

// The preload cannot be used with a sanitizer.
struct Failing {
  // Launches by their number; a q before it: the queue takes the launch, which fails there.
  explicit Failing(const std::string& launches)
      : environment{{"LD_PRELOAD", built_program("libfaults_preload.so")}, {"SAMEBYTES_FAULTS", faults_of(launches)}} {}
  static std::string faults_of(const std::string& launches) {
    std::istringstream list(launches);
    std::string text;
    for (std::string launch; std::getline(list, launch, ',');) {
      const bool is_queued = launch[0] == 'q';
      text += (is_queued ? "negative clEnqueueNDRangeKernel " : "error clEnqueueNDRangeKernel ") +
              launch.substr(is_queued ? 1 : 0) + ";";
    }
    return text;
  }
  const std::map<std::string, std::string> environment;
};

// What nothing happened to.
const Files& undisturbed() {
  static const Files files;
  static const int status = run_command(joined(kRun, files.words())).status;
  EXPECT_EQ(status, 0);
  return files;
}

TEST(Survive, kill_9_changes_nothing) {
  const Files& plain = undisturbed();
  const Files killed;
  kill_until_done(joined(kRun, killed.keeping("2")), killed, 1, 4);
  expect_same_run(plain, killed);
  // What a kill left half written stays for an hour, since another machine may be writing it, and is no checkpoint.
  EXPECT_LE(names_in(killed.kept).size(), 3u);
  EXPECT_GE(events_in(killed.log, "resume").size(), 1u);

  // A run that is done says the same again.
  const CommandResult again = run_command(joined(kRun, joined(killed.keeping("2"), {"--resume", "auto", "--json"})));
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.json()["steps"], 57);
  for (const char* loss : {"train_loss", "test_loss"})
    EXPECT_EQ(again.json()[loss].get<double>(), results_in(plain.log).back()[loss].get<double>()) << loss;
  EXPECT_EQ(again.json()["survival"]["checkpoint_bytes"].is_number(), true);
  expect_same_run(plain, killed);
}

TEST(Survive, ctrl_c_keeps_the_state_once_more) {
  const Files plain, interrupted;
  const Words run = {"train", "digits", "--epochs", "30", "--schedule", "constant"};
  CommandRun first;
  first.arguments = joined(run, interrupted.keeping("epoch"));
  first.signal_after = "epoch 2/";
  const CommandResult stopped = run_command(first);
  ASSERT_EQ(stopped.status, 130) << stopped.err;
  const auto newest = *names_in(interrupted.kept).rbegin();
  const int step = std::stoi(newest.substr(std::string("checkpoint-").size()));
  EXPECT_GE(step, 2 * 23) << newest;
  // To the same number of steps, which a constant rate allows to be another one than at first.
  const Words rest = {"train", "digits", "--steps", std::to_string(step + 5), "--schedule", "constant", "--quiet"};
  ASSERT_EQ(run_command(joined(rest, plain.words())).status, 0);
  const CommandResult done =
      run_command(joined(rest, joined(interrupted.keeping("epoch"), {"--resume", "auto", "--json"})));
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.json()["survival"]["resumed_from"], step);
  expect_same_run(plain, interrupted);
}

// The batch grows while it is killed, also between two micro-batches of an update.
TEST(Survive, a_batch_that_grows_goes_on_as_large_as_it_was) {
  const Words run = {"train",       "digits", "--steps", "140",         "--batch", "8", "--adaptive-batch",
                     "--max-batch", "32",     "--quiet", "--clip-norm", "1"};
  const Files plain, killed;
  const CommandResult whole = run_command(joined(run, joined(plain.words(), {"--json"})));
  ASSERT_EQ(whole.status, 0) << whole.err;
  EXPECT_GT(whole.json()["last_batch"], 8);
  kill_until_done(joined(run, killed.keeping("3")), killed, 5, 4);
  expect_same_run(plain, killed);
  const CommandResult again = run_command(joined(run, joined(killed.keeping("3"), {"--resume", "auto", "--json"})));
  ASSERT_EQ(again.status, 0) << again.err;
  for (const char* key : {"last_batch", "updates", "noise_scale"})
    EXPECT_EQ(again.json()[key], whole.json()[key]) << key;
  const CommandResult refused =
      run_command(joined(run, joined(killed.keeping("3"), {"--resume", "auto", "--max-batch", "64"})));
  EXPECT_EQ(refused.status, 2);
}

// Folded curves in the form of the measured ones; a third of them have a dip.
std::string made_curves(const TemporaryFolder& folder) {
  std::string text = "label";
  constexpr int kPoints = 201, kCurves = 60;
  for (int i = 0; i < kPoints; ++i) text += ",f" + std::to_string(i);
  for (int curve = 0; curve < kCurves; ++curve) {
    text += curve % 3 == 0 ? "\n1" : "\n0";
    for (int i = 0; i < kPoints; ++i)
      text += "," + std::to_string(curve % 3 == 0 && i > 90 && i < 110 ? 0.1 : 1 + 0.01 * ((curve * 7 + i) % 13));
  }
  put(folder / "curves.csv", text + "\n");
  return folder / "curves.csv";
}

TEST(Survive, several_folds_go_on_in_the_one_under_way) {
  const TemporaryFolder folder;
  const Words run = {"train", "transit", "--data", made_curves(folder), "--steps", "4", "--batch", "16", "--quiet"};
  const Files plain, killed;
  const CommandResult whole = run_command(joined(run, {"--log", plain.log, "--json"}));
  ASSERT_EQ(whole.status, 0) << whole.err;
  ASSERT_EQ(whole.json()["folds"]["test_area_under_curve"].size(), 5u);
  const Words keeping = joined(run, {"--log", killed.log, "--checkpoint", killed.kept, "--checkpoint-every", "3"});
  kill_until_done(keeping, killed, 2, 4);
  expect_same_run(plain, killed, false);
  const CommandResult again = run_command(joined(keeping, {"--resume", "auto", "--json"}));
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.json()["folds"], whole.json()["folds"]);
  EXPECT_EQ(*names_in(killed.kept).rbegin(), "checkpoint-000000020.safetensors");
  if (is_sanitized()) return;
  // Five launches that fail would be too many for one run; the state of an ended fold is not gone back to.
  const CommandResult failed = run_command(joined(run, {"--log", plain.log, "--json", "--on-device-error", "retry"}),
                                           Failing("300,900").environment);
  ASSERT_EQ(failed.status, 0) << failed.err;
  EXPECT_EQ(failed.json()["survival"]["device_errors"].size(), 2u);
  EXPECT_EQ(failed.json()["folds"], whole.json()["folds"]);
  expect_same_run(plain, killed, false);
}

TEST(Survive, what_does_not_fit_is_refused) {
  const Files files;
  const Words run = joined({"train", "digits", "--steps", "3", "--quiet"}, files.keeping("1"));
  ASSERT_EQ(run_command(joined(run, {"--keep", "2"})).status, 0);
  Words told = joined(run, {"--resume", "auto"});
  std::erase(told, "--quiet");
  const std::string complete = run_command(told).out;
  EXPECT_THAT(complete, HasSubstr("already complete: 3 of 3 steps"));
  EXPECT_THAT(complete, HasSubstr("3 steps of 64"));
  EXPECT_THAT(complete, HasSubstr("all before this start"));
  EXPECT_THAT(complete, HasSubstr("checkpoints   none written"));
  for (const char* unmeasured : {"p50", "gathered", "launches", "waiting"})
    EXPECT_THAT(complete, ::testing::Not(HasSubstr(unmeasured)));
  EXPECT_THAT(run_command(joined(told, {"--steps=2"})).err, HasSubstr("--steps comes twice"));
  EXPECT_EQ(names_in(files.kept).size(), 2u);
  const auto refused = [&](const Words& words, int status, const char* text) {
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_THAT(result.err, HasSubstr(text));
  };
  refused(run, 2, "has the checkpoints of an earlier run: --resume auto goes on from the newest");
  EXPECT_EQ(results_in(files.log).size(), 4u) << "the log of the earlier run is as it was";
  refused(joined(run, {"--resume", "auto", "--batch", "32"}), 2, "--batch is 64 there and 32 here");
  refused(joined(run, {"--resume", "auto", "--precision", "f16"}), 2, "--precision is f32 there and f16 here");
  refused({"train", "digits", "--resume", files.saved}, 1, "expected the format \"samebytes run 1\", found \"pt\"");
  refused({"train", "digits", "--resume", "auto"}, 2, "--resume auto needs --checkpoint DIR");
  refused({"train", "digits", "--keep", "2"}, 2, "--keep needs --checkpoint DIR");
  refused({"train", "digits", "--checkpoint-every", "0"}, 2, "expected epoch or a number of steps, got 0");
  refused({"train", "digits", "--checkpoint-every", "5"}, 2, "--checkpoint-every needs --checkpoint DIR");

  // A damaged file is passed over with a word, by name it is an error.
  const std::string last = files.kept + "/" + *names_in(files.kept).rbegin();
  put(last, get(last).substr(0, 5000));
  refused({"train", "digits", "--steps", "3", "--resume", last}, 1, last.c_str());
  const CommandResult passed =
      run_command(joined({"train", "digits", "--steps", "3"}, joined(files.keeping("1"), {"--resume", "auto"})));
  EXPECT_EQ(passed.status, 0) << passed.err;
  EXPECT_THAT(passed.out, HasSubstr("passed over: safetensors: " + last));
  EXPECT_THAT(passed.out, HasSubstr("goes on after step 2"));
}

TEST(Survive, a_device_error_stops_the_run_with_a_whole_checkpoint) {
  if (is_sanitized()) GTEST_SKIP() << "LD_PRELOAD does not go with sanitizers";
  const Files& plain = undisturbed();
  const Files failed;
  const Words run = joined(kRun, failed.keeping("5"));
  const CommandResult stopped = run_command(run, Failing("1000").environment);
  EXPECT_EQ(stopped.status, 1);
  EXPECT_THAT(stopped.err, HasSubstr("CL_OUT_OF_RESOURCES"));
  EXPECT_THAT(stopped.err, HasSubstr("is whole, --resume auto goes on from it"));
  ASSERT_EQ(events_in(failed.log, "device_error").size(), 1u);
  EXPECT_EQ(events_in(failed.log, "device_error")[0]["action"], "stop");
  ASSERT_EQ(run_command(joined(run, {"--resume", "auto"})).status, 0);
  expect_same_run(plain, failed);
}

TEST(Survive, a_device_error_is_tried_again_from_a_checkpoint_or_from_memory) {
  if (is_sanitized()) GTEST_SKIP() << "LD_PRELOAD does not go with sanitizers";
  const Files& plain = undisturbed();
  const Files folder, memory;
  const Words retry = {"--on-device-error", "retry", "--json"};
  // One launch refused, one that fails in the queue.
  const CommandResult first =
      run_command(joined(joined(kRun, folder.keeping("5")), retry), Failing("1000,q2000").environment);
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(first.json()["survival"]["device_errors"].size(), 2u) << first.out;
  EXPECT_EQ(events_in(folder.log, "device_error").size(), 2u);
  expect_same_run(plain, folder);
  const CommandResult second = run_command(
      joined(joined(kRun, memory.words()), joined(retry, {"--checkpoint-every", "5"})), Failing("20,1500").environment);
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(second.json()["survival"]["device_errors"].size(), 2u) << second.out;
  expect_same_run(plain, memory);
  // Not for ever.
  const CommandResult third =
      run_command(joined(joined(kRun, memory.words()), retry), Failing("9,18,27,36,45").environment);
  EXPECT_EQ(third.status, 1) << third.out;
}

TEST(Survive, a_device_error_goes_on_on_the_cpu) {
  if (is_sanitized()) GTEST_SKIP() << "LD_PRELOAD does not go with sanitizers";
  const Files& plain = undisturbed();
  const Files failed;
  const CommandResult result = run_command({"train", "digits", "--steps", "57", "--save", failed.saved, "--log",
                                            failed.log, "--checkpoint", failed.kept, "--on-device-error", "cpu"},
                                           Failing("1000").environment);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("going on on the CPU"));
  EXPECT_EQ(events_in(failed.log, "device_error")[0]["action"], "cpu");
  expect_same_run(plain, failed);  // the device is the CPU here before and after
}

TEST(Survive, folds_that_are_none_name_the_checkpoint) {
  const cli::FoldRun run{.fold = 2, .steps = 30, .areas = {0.5, 0.75}};
  const cli::FoldRun back = cli::FoldRun::from_text(run.to_text(), "a.safetensors");
  EXPECT_EQ(back.fold, 2);
  EXPECT_EQ(back.steps, 30);
  EXPECT_EQ(back.areas, run.areas);
  for (const std::string& text :
       {std::string("x"), std::string("7"), std::string("{}"), std::string(100000, '['),
        std::string(R"({"fold": -1, "steps": 0, "areas": []})"), std::string(R"({"fold": 0, "steps": 0, "areas": 1})")})
    EXPECT_THAT(message_of<IoError>([&] { cli::FoldRun::from_text(text, "a.safetensors"); }),
                HasSubstr("a.safetensors: expected folds as fold, steps and areas, found " + text.substr(0, 60)));
}

}  // namespace
}  // namespace samebytes::testing
