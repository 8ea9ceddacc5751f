// The same seed gives the same parameters, bit for bit: in every memory mode, with any number of workers, with any
// number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/command.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

std::string trained(const TemporaryFolder& folder, std::vector<std::string> words,
                    std::map<std::string, std::string> environment) {
  const std::string file = folder / "net.safetensors";
  words.insert(words.begin(), {"train", "digits", "--quiet", "--save", file});
  const auto result = run_command(words, environment);
  EXPECT_EQ(result.status, 0) << result.err;
  return get(file);
}

double loss_of_first_step(const TemporaryFolder& folder, std::map<std::string, std::string> environment) {
  const std::string file = folder / "log.jsonl";
  const auto result = run_command({"train", "digits", "--quiet", "--steps", "1", "--log", file}, environment);
  EXPECT_EQ(result.status, 0) << result.err;
  std::istringstream lines(get(file));
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json["event"] == "step") return json["loss"];
  }
  return NAN;
}

TEST(SameBytes, digits_end_the_same_in_every_memory_mode) {
  const TemporaryFolder folder;
  for (const std::string personality : {"cpu", "gpu"}) {
    std::map<std::string, std::string> environment = {{"SAMEBYTES_PERSONALITY", personality},
                                                      {"SAMEBYTES_MEMORY", "fine"}};
    // The gpu kernels are slow on a CPU device: its groups run one after the other.
    const std::vector<std::string> words = {"--steps", personality == "cpu" ? "25" : "4"};
    const std::string expected = trained(folder, words, environment);
    ASSERT_FALSE(expected.empty());
    for (const std::string mode : {"system", "coarse", "hostptr", "copy"}) {
      environment["SAMEBYTES_MEMORY"] = mode;
      EXPECT_TRUE(trained(folder, words, environment) == expected) << personality << " kernels, mode " << mode;
    }
  }
}

TEST(SameBytes, digits_end_the_same_with_any_number_of_workers_slots_and_threads) {
  const TemporaryFolder folder;
  const std::string expected = trained(folder, {"--epochs", "2", "--workers", "1"}, {});
  ASSERT_FALSE(expected.empty());
  const std::vector<std::vector<std::string>> others = {{"--workers", "1"}, {"--workers", "0"}, {"--workers", "3"},
                                                        {"--slots", "1"},   {"--slots", "4"},   {"--threads", "1"}};
  for (auto words : others) {
    const std::string what = words[0] + " " + words[1];
    words.insert(words.end(), {"--epochs", "2"});
    EXPECT_TRUE(trained(folder, words, {}) == expected) << what;
  }
}

TEST(SameBytes, the_two_personalities_agree_on_the_first_loss_and_on_the_accuracy) {
  const TemporaryFolder folder;
  const double cpu = loss_of_first_step(folder, {{"SAMEBYTES_PERSONALITY", "cpu"}});
  const double gpu = loss_of_first_step(folder, {{"SAMEBYTES_PERSONALITY", "gpu"}});
  EXPECT_NEAR(cpu, gpu, 1e-5 * std::abs(cpu));
  const auto accuracy = [](const char* personality) {
    const auto result = run_command({"train", "digits", "--epochs", "3", "--json", "--quiet"},
                                    {{"SAMEBYTES_PERSONALITY", personality}});
    EXPECT_EQ(result.status, 0) << result.err;
    return result.json()["test_accuracy"].get<double>();
  };
  EXPECT_NEAR(accuracy("cpu"), accuracy("gpu"), 0.01);
}

// Every loss of a run and what it came to, as written, without the times.
std::vector<std::string> losses_of(const TemporaryFolder& folder, std::vector<std::string> words) {
  const std::string file = folder / "log.jsonl";
  words.insert(words.begin(), "train");
  words.insert(words.end(), {"--quiet", "--json", "--log", file});
  const auto result = run_command(words);
  EXPECT_EQ(result.status, 0) << result.err;
  std::vector<std::string> losses;
  std::istringstream lines(get(file));
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    losses.push_back(json.value(json["event"] == "step" ? "loss" : "test_loss", nlohmann::json()).dump());
  }
  const auto summary = result.json();
  if (summary["memory_mode"] == "fine") {
    EXPECT_EQ(summary["bytes_copied_per_step"], 0) << words[1];
  }
  return losses;
}

TEST(SameBytes, every_workload_repeats_itself_with_another_number_of_workers_and_copies_nothing) {
  const TemporaryFolder folder;
  const std::string data = data_folder("");
  SAMEBYTES_NEED_DATA(data);
  const std::vector<std::vector<std::string>> runs = {
      {"resnet20", "--data", data + "/cifar10_small", "--steps", "6"},
      {"series", "--data", data + "/ucr", "--name", "GunPoint", "--steps", "8"},
      {"transit", "--data", data + "/light_curves", "--epochs", "1"},
      {"speech", "--data", data + "/speech_digits", "--steps", "8"},
      {"vowels", "--data", data + "/ucr", "--epochs", "2"},
      {"gpt", "--data", data + "/text/tinyshakespeare.txt", "--steps", "8"}};
  for (auto words : runs) {
    words.insert(words.end(), {"--workers", "0"});
    const auto expected = losses_of(folder, words);
    words.back() = "3";
    EXPECT_GT(expected.size(), 5u) << words[0];
    EXPECT_EQ(losses_of(folder, words), expected) << words[0];
  }
}

}  // namespace
}  // namespace samebytes::testing
