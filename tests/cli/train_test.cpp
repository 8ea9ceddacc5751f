// samebytes train and eval on the digits: the summary's contract, saving, logging, interruption, and what goes wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "cli/command.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> keys_of(const nlohmann::ordered_json& json) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

std::vector<nlohmann::json> lines_of_log(const std::string& path) {
  std::istringstream text(get(path));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(Train, json_is_the_last_line_with_exactly_the_promised_keys) {
  const auto result = run_command({"train", "digits", "--steps", "30", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = result.json();
  ASSERT_TRUE(json.is_object()) << result.out;
  EXPECT_THAT(keys_of(json),
              ::testing::ElementsAre("workload", "device", "memory_mode", "personality", "precision", "tuning",
                                     "optimizer", "schedule", "rate", "warmup", "batch", "steps", "samples", "seconds",
                                     "samples_per_second", "step_ms_p50", "step_ms_p95", "train_loss", "test_loss",
                                     "test_accuracy", "bytes_copied_per_step", "bytes_gathered_per_step",
                                     "launches_per_step", "peak_bytes", "stall_fraction", "first_step_seconds"));
  EXPECT_EQ(json["workload"], "digits");
  EXPECT_EQ(json["precision"], "f32");
  EXPECT_EQ(json["steps"], 30);
  EXPECT_GT(json["samples"], 29 * 10);
  EXPECT_GT(json["samples_per_second"], 0.0);
  EXPECT_GT(json["step_ms_p50"], 0.0);
  EXPECT_GE(json["step_ms_p95"], json["step_ms_p50"]);
  EXPECT_GT(json["launches_per_step"], 1.0);
  EXPECT_GT(json["peak_bytes"], 0);
  EXPECT_GE(json["stall_fraction"], 0.0);
  EXPECT_LE(json["stall_fraction"], 1.0);
  EXPECT_GT(json["test_accuracy"], 0.2);
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1) << "standard output has the JSON line only";
}

TEST(Train, precision_is_said_in_the_summary_the_log_and_the_file) {
  const TemporaryFolder folder;
  const std::string file = folder / "digits.safetensors", log = folder / "log.jsonl";
  const auto result = run_command(
      {"train", "digits", "--precision", "f16", "--steps", "30", "--save", file, "--log", log, "--json", "--quiet"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = result.json();
  EXPECT_EQ(json["precision"], "f16");
  EXPECT_GT(json["loss_scale"], 0.0);
  EXPECT_GE(json["skipped_steps"], 0);
  EXPECT_GT(json["test_accuracy"], 0.2);
  EXPECT_EQ(lines_of_log(log).front()["precision"], "f16");
  EXPECT_THAT(get(file), HasSubstr("\"precision\":\"f16\""));
  const auto tested = run_command({"eval", "digits", "--load", file, "--precision", "f16", "--json", "--quiet"});
  ASSERT_EQ(tested.status, 0) << tested.err;
  EXPECT_EQ(tested.json()["precision"], "f16");
  EXPECT_EQ(tested.json()["test_loss"], json["test_loss"]);

  const auto wrong = run_command({"train", "digits", "--precision", "f16", "--check-nan"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err,
              HasSubstr("--check-nan stops at the overflows that the loss scaler of --precision f16 looks for"));
}

TEST(Train, a_saved_network_is_tested_in_int8) {
  const TemporaryFolder folder;
  const std::string file = folder / "digits.safetensors";
  const auto trained = run_command({"train", "digits", "--epochs", "4", "--save", file, "--json"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  const double accuracy = trained.json()["test_accuracy"], loss = trained.json()["test_loss"];
  for (const char* ranges : {"static", "dynamic"}) {
    const auto tested = run_command(
        {"eval", "digits", "--load", file, "--precision", "int8", "--input-ranges", ranges, "--json", "--quiet"});
    ASSERT_EQ(tested.status, 0) << tested.err;
    EXPECT_EQ(tested.json()["precision"], "int8");
    EXPECT_NEAR(tested.json()["test_accuracy"], accuracy, 0.01) << ranges;
    EXPECT_NE(tested.json()["test_loss"], loss) << "the network ran in f32";
    EXPECT_NEAR(tested.json()["test_loss"], loss, 0.05 * loss) << ranges;
  }
  const auto alone = run_command({"eval", "digits", "--load", file, "--input-ranges", "dynamic"});
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(alone.err, HasSubstr("--input-ranges dynamic needs --precision int8"));
  const auto both = run_command({"bench", "digits", "--precision", "int8"});
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("--precision int8 is for inference: add --mode infer"));
  const auto wrong = run_command({"train", "digits", "--precision", "int8"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--precision"));
}

TEST(Train, the_summary_names_what_a_newcomer_looks_for) {
  const auto result = run_command({"train", "digits", "--steps", "5"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* word : {"test accuracy", "samples/s", "device", "memory mode", "bytes copied", "gathered"})
    EXPECT_THAT(result.out, HasSubstr(word));
  EXPECT_EQ(result.out.find('\r'), std::string::npos) << "no bar where there is no terminal";
}

TEST(Train, a_speed_says_whether_the_step_that_compiles_is_in_it) {
  const std::string one = run_command({"train", "digits", "--steps", "1", "--quiet"}).out;
  EXPECT_THAT(one, HasSubstr("samples/s with the first step, which compiles; 1 step of 64"));
  EXPECT_THAT(one, ::testing::Not(HasSubstr("launches"))) << "those of the first step are not counted";
  EXPECT_THAT(one, ::testing::Not(HasSubstr("warm-up")));
  const std::string more = run_command({"train", "digits", "--steps", "20", "--quiet"}).out;
  EXPECT_THAT(more, HasSubstr("samples/s without the first step, which compiles; 20 steps of 64"));
  EXPECT_THAT(more, HasSubstr("warm-up of 1 step\n"));
}

TEST(Train, quiet_prints_the_summary_only) {
  const auto result = run_command({"train", "digits", "--steps", "5", "--quiet"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("digits"));
  EXPECT_EQ(result.err, "");
}

TEST(Train, a_terminal_gets_a_bar_that_is_gone_at_the_end) {
  CommandRun run;
  run.arguments = {"train", "digits", "--epochs", "4"};
  run.environment = {{"TERM", "xterm"}, {"LC_ALL", "C.UTF-8"}};
  run.terminal = true;
  const auto result = run_command(run);
  ASSERT_EQ(result.status, 0) << result.out;
  EXPECT_THAT(result.out, HasSubstr("\r\033[K"));
  EXPECT_THAT(result.out, HasSubstr("samples/s"));
}

TEST(Train, a_terminal_sees_at_once_what_the_program_waits_for) {
  double soonest = 1e9;
  for (int attempt = 0; attempt < 3 && soonest > 0.3; ++attempt) {
    const TemporaryFolder cold;
    CommandRun run;
    run.arguments = {"train", "digits", "--steps", "2"};
    run.environment = {
        {"TERM", "xterm"}, {"LC_ALL", "C.UTF-8"}, {"POCL_CACHE_DIR", cold.string()}, {"XDG_CACHE_HOME", cold.string()}};
    run.terminal = true;
    run.signal_after = "compiling kernels";
    run.signal = SIGKILL;
    const auto result = run_command(run);
    EXPECT_EQ(result.status, 128 + SIGKILL) << result.out;
    for (const char* wait : {"making the data of digits", "opening the device", "making the model"})
      EXPECT_THAT(result.out, HasSubstr(wait));
    soonest = std::min(soonest, result.first_output_seconds);
  }
  EXPECT_LT(soonest, 0.3);
}

TEST(Train, steps_end_a_run_whatever_epochs_says) {
  EXPECT_EQ(run_command({"train", "digits", "--steps", "3", "--epochs", "2", "--json"}).json()["steps"], 3);
  // An epoch of 1437 digits in batches of 64 has 23 steps.
  EXPECT_EQ(run_command({"train", "digits", "--steps", "50", "--epochs", "1", "--json"}).json()["steps"], 50);
}

TEST(Train, what_it_saves_eval_loads_with_the_same_result) {
  const TemporaryFolder folder;
  const std::string file = folder / "digits.safetensors";
  const auto trained = run_command({"train", "digits", "--epochs", "2", "--save", file, "--json"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_EQ(folder.count(), 1u) << "nothing is left beside the file";
  const auto tested = run_command({"eval", "digits", "--load", file, "--json"});
  ASSERT_EQ(tested.status, 0) << tested.err;
  EXPECT_EQ(tested.json()["test_accuracy"], trained.json()["test_accuracy"]);
  EXPECT_EQ(tested.json()["test_loss"], trained.json()["test_loss"]);
  EXPECT_EQ(tested.json()["samples"], 360);
  const auto resumed = run_command({"train", "digits", "--steps", "1", "--rate", "1e-12", "--load", file, "--json"});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_GT(resumed.json()["test_accuracy"], 0.5);
}

TEST(Train, the_log_has_a_line_for_each_step_and_epoch) {
  const TemporaryFolder folder;
  const std::string file = folder / "log.jsonl";
  ASSERT_EQ(run_command({"train", "digits", "--epochs", "2", "--log", file, "--quiet"}).status, 0);
  const auto lines = lines_of_log(file);
  std::int64_t steps = 0, epochs = 0;
  for (const auto& line : lines) {
    if (line["event"] == "step") {
      EXPECT_EQ(line["step"], ++steps);
      EXPECT_TRUE(line["loss"].is_number());
      EXPECT_TRUE(line["rate"].is_number());
    }
    if (line["event"] == "epoch") {
      EXPECT_EQ(line["epoch"], ++epochs);
    }
  }
  EXPECT_EQ(steps, 46);
  EXPECT_EQ(epochs, 2);
  EXPECT_EQ(lines.back()["event"], "summary");
  EXPECT_EQ(lines.front()["event"], "start");
  EXPECT_EQ(lines.front()["tuning"], "built-in");
}

TEST(Train, the_norm_of_gradients_is_in_the_log_where_it_is_free_or_asked_for) {
  const TemporaryFolder folder;
  const std::string log = folder / "log.jsonl";
  const auto norms_of = [&](std::vector<std::string> words) {
    const std::vector<std::string> run = {"train", "digits", "--steps", "6", "--quiet", "--json", "--log", log};
    words.insert(words.begin(), run.begin(), run.end());
    const auto result = run_command(words);
    EXPECT_EQ(result.status, 0) << result.err;
    std::vector<int> steps;
    for (const auto& line : lines_of_log(log))
      if (line["event"] == "step" && line.contains("grad_norm")) {
        EXPECT_GT(line["grad_norm"].get<double>(), 0.0);
        steps.push_back(line["step"].get<int>());
      }
    return std::make_pair(steps, result.json()["launches_per_step"].get<double>());
  };
  using Steps = std::vector<int>;
  EXPECT_EQ(norms_of({}).first, Steps());
  EXPECT_EQ(norms_of({"--log-grad-norm", "2", "--tensorboard", folder / "curves"}).first, (Steps{2, 4, 6}));
  std::string curves;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "curves")) curves += get(entry.path().string());
  EXPECT_THAT(curves, HasSubstr("step/grad_norm"));
  const auto with = norms_of({"--clip-norm", "1"}), without = norms_of({"--clip-norm", "1", "--log-grad-norm", "0"});
  EXPECT_EQ(with.first, (Steps{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(without.first, Steps());
  EXPECT_EQ(with.second, without.second) << "launches";
  // Of an update of several batches, the rest of an epoch too.
  EXPECT_EQ(norms_of({"--log-grad-norm", "1", "--accumulate", "2"}).first, (Steps{1, 2, 3, 4, 5, 6}));
  const auto refused =
      run_command({"train", "digits", "--steps", "1", "--release-gradients", "--log-grad-norm", "1", "--quiet"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("--log-grad-norm reads all gradients at once"));
}

TEST(Train, optimizer_schedule_and_averages_are_chosen_and_stand_in_the_summary) {
  const TemporaryFolder folder;
  const std::string file = folder / "log.jsonl";
  const auto result =
      run_command({"train", "digits", "--steps", "30", "--optimizer", "lamb", "--rate", "0.02", "--schedule",
                   "onecycle", "--weight-decay", "0.1", "--clip-norm", "1", "--ema", "0.9", "--log", file, "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = result.json();
  EXPECT_EQ(json["optimizer"], "lamb");
  EXPECT_EQ(json["schedule"], "onecycle");
  EXPECT_EQ(json["rate"], 0.02);
  EXPECT_EQ(json["ema"], 0.9);
  EXPECT_GT(json["test_accuracy"], 0.3);
  const auto lines = lines_of_log(file);
  EXPECT_EQ(lines.front()["optimizer"], "lamb");
  std::vector<double> rates;
  for (const auto& line : lines)
    if (line["event"] == "step") rates.push_back(line["rate"]);
  ASSERT_EQ(rates.size(), 30u);
  EXPECT_NEAR(rates[0], 0.02 / 25, 1e-12);
  EXPECT_NEAR(rates[8], 0.02, 1e-12);  // 30 % of 30 steps
  EXPECT_NEAR(rates[29], 0.02 / 25 / 1e4, 1e-12);
}

TEST(Train, a_rate_grows_with_the_batch_and_warms_up_from_the_old_one) {
  const TemporaryFolder folder;
  const std::string file = folder / "log.jsonl";
  const auto result =
      run_command({"train",        "digits", "--steps",      "12",         "--optimizer", "sgd",     "--momentum",
                   "0.9",          "--rate", "0.01",         "--schedule", "constant",    "--batch", "256",
                   "--scale-rate", "linear", "--base-batch", "64",         "--log",       file,      "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NEAR(result.json()["rate"], 0.04, 1e-12);
  EXPECT_EQ(result.json()["warmup"], 3);  // a quarter of the run
  std::vector<double> rates;
  for (const auto& line : lines_of_log(file))
    if (line["event"] == "step") rates.push_back(line["rate"]);
  ASSERT_EQ(rates.size(), 12u);
  EXPECT_NEAR(rates[0], 0.01, 1e-12);
  EXPECT_NEAR(rates[1], 0.02, 1e-12);
  EXPECT_NEAR(rates[3], 0.04, 1e-12);
}

TEST(Train, a_plateau_lowers_the_rate_after_tests_that_were_not_better) {
  const TemporaryFolder folder;
  const std::string file = folder / "log.jsonl";
  // At this rate nothing gets better by the threshold.
  const auto result = run_command({"train", "digits", "--epochs", "4", "--optimizer", "sgd", "--rate", "1e-7",
                                   "--schedule", "plateau", "--every", "1", "--gamma", "0.5", "--log", file, "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  double last = 0;
  for (const auto& line : lines_of_log(file))
    if (line["event"] == "step") last = line["rate"];
  EXPECT_NEAR(last, 0.5e-7, 1e-15);
}

TEST(Train, ctrl_c_ends_with_a_summary_and_130) {
  CommandRun run;
  run.arguments = {"train", "digits", "--epochs", "100000"};
  run.signal_after = "epoch 1/";
  const auto result = run_command(run);
  EXPECT_EQ(result.status, 130);
  EXPECT_THAT(result.out, HasSubstr("interrupted"));
  EXPECT_THAT(result.out, HasSubstr("samples/s"));
}

TEST(Train, a_closed_terminal_ends_a_run_with_a_checkpoint_unless_nohup_has_it_ignored) {
  const TemporaryFolder folder;
  CommandRun run;
  run.arguments = {"train", "digits", "--epochs", "100000", "--checkpoint", folder / "state"};
  run.signal_after = "epoch 1/";
  run.signal = SIGHUP;
  const auto closed = run_command(run);
  EXPECT_EQ(closed.status, 130) << closed.err;
  EXPECT_FALSE(std::filesystem::is_empty(folder / "state"));
  run.arguments = {"train", "digits", "--epochs", "3"};
  const auto before = std::signal(SIGHUP, SIG_IGN);  // as nohup leaves it to its program
  const auto kept = run_command(run);
  std::signal(SIGHUP, before);
  EXPECT_EQ(kept.status, 0) << kept.err;
  EXPECT_THAT(kept.out, HasSubstr("epoch 3/"));
}

TEST(Train, the_same_seed_gives_the_same_file_and_another_seed_another_one) {
  const TemporaryFolder folder;
  const auto train = [&](const char* name, const char* seed) {
    const auto result =
        run_command({"train", "digits", "--steps", "30", "--seed", seed, "--save", folder / name, "--quiet"});
    EXPECT_EQ(result.status, 0) << result.err;
    return get(folder / name);
  };
  const std::string first = train("a", "5");
  EXPECT_EQ(first, train("b", "5"));
  EXPECT_NE(first, train("c", "6"));
}

TEST(Train, an_unwritable_path_fails_before_training) {
  const auto result = run_command({"train", "digits", "--save", "/proc/nowhere/net.safetensors"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, StartsWith("samebytes: "));
  EXPECT_THAT(result.err, HasSubstr("/proc/nowhere"));
  EXPECT_EQ(result.out, "");
}

TEST(Train, a_full_disk_is_an_error) {
  const auto result = run_command({"train", "digits", "--steps", "1", "--quiet", "--save", "/dev/full"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("/dev/full"));
}

TEST(Train, wrong_files_are_named) {
  const TemporaryFolder folder;
  put(folder / "broken.safetensors", "no header");
  for (const char* name : {"missing.safetensors", "broken.safetensors"}) {
    const auto result = run_command({"eval", "digits", "--load", folder / name});
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.err, StartsWith("samebytes: "));
    EXPECT_THAT(result.err, HasSubstr(name));
  }
  const auto data = run_command({"train", "cnn", "--data", folder / "none"});
  EXPECT_EQ(data.status, 1);
  EXPECT_THAT(data.err, HasSubstr("none"));
}

TEST(Train, parameters_of_another_model_are_refused) {
  const TemporaryFolder folder;
  const std::string file = folder / "digits.safetensors";
  ASSERT_EQ(run_command({"train", "digits", "--steps", "1", "--save", file, "--quiet"}).status, 0);
  std::filesystem::create_directories(folder / "data");
  const auto result = run_command({"eval", "mlp", "--load", file, "--data", folder / "data"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, StartsWith("samebytes: "));
}

TEST(Train, a_batch_larger_than_the_set_is_wrong_usage) {
  const auto result = run_command({"train", "digits", "--batch", "100000"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("100000"));
  EXPECT_THAT(result.err, HasSubstr("1 437"));
}

TEST(Train, check_nan_stops_at_the_step_and_names_the_op) {
  const auto result =
      run_command({"train", "digits", "--rate", "1e30", "--schedule", "constant", "--check-nan", "--quiet"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, StartsWith("samebytes: step "));
}

TEST(Train, a_loss_that_is_no_number_fails_and_points_at_check_nan) {
  const auto result = run_command({"train", "digits", "--rate", "1e30", "--schedule", "constant", "--quiet"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("--check-nan"));
}

}  // namespace
}  // namespace samebytes::testing
