// What the workloads must reach on real data. SAMEBYTES_ALL_SEEDS=1 tries three seeds instead of one.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "cli/command.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

std::vector<std::string> seeds() {
  return std::getenv("SAMEBYTES_ALL_SEEDS") != nullptr ? std::vector<std::string>{"1", "2", "3"}
                                                       : std::vector<std::string>{"1"};
}

// The accuracy of a run whose steps copied nothing, NaN of one that failed.
double accuracy_of(std::vector<std::string> words, const std::string& seed) {
  words.insert(words.end(), {"--seed", seed, "--json", "--quiet"});
  const auto result = run_command(words);
  EXPECT_EQ(result.status, 0) << result.err;
  if (result.status != 0) return std::numeric_limits<double>::quiet_NaN();
  const auto json = result.json();
  if (json["memory_mode"] == "fine") {
    EXPECT_EQ(json["bytes_copied_per_step"], 0);
  }
  return json["test_accuracy"];
}

void expect_accuracy(const std::vector<std::string>& words, double wanted) {
  for (const std::string& seed : seeds()) EXPECT_GE(accuracy_of(words, seed), wanted) << "seed " << seed;
}

TEST(Accuracy, digits_reach_97_percent_within_20_seconds) {
  const auto start = std::chrono::steady_clock::now();
  expect_accuracy({"train", "digits"}, 0.97);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (!is_sanitized()) {
    EXPECT_LT(took.count(), 20.0 * static_cast<double>(seeds().size()));
  }
}

// The goal is 0.3 points, which the 10 000 test images of MNIST resolve (docs/precision.md). Here one of 360 is 0.28
// points, and runs that differ in the last bit of a sum already differ by some of them: three seeds are looked at as
// one.
TEST(Accuracy, digits_are_as_good_in_16_bits_as_their_images_can_tell) {
  constexpr double kImages = 360, kApart = 2;
  const std::vector<std::string> three{"1", "2", "3"};
  const auto mean_of = [&](const char* precision) {
    double sum = 0;
    for (const std::string& seed : three) sum += accuracy_of({"train", "digits", "--precision", precision}, seed);
    return sum / static_cast<double>(three.size());
  };
  const double wide = mean_of("f32");
  for (const char* precision : {"f16", "bf16"})
    EXPECT_GE(mean_of(precision), wide - (kApart + 0.5) / kImages) << precision;
}

TEST(Accuracy, cnn_reaches_99_percent_on_mnist_in_3_epochs) {
  const std::string folder = data_folder("mnist");
  SAMEBYTES_NEED_DATA(folder);
  expect_accuracy({"train", "cnn", "--data", folder, "--epochs", "3"}, 0.99);
}

TEST(Accuracy, cnn_reaches_90_8_percent_on_fashion_mnist_in_5_epochs) {
  const std::string folder = data_folder("fashion_mnist");
  SAMEBYTES_NEED_DATA(folder);
  expect_accuracy({"train", "cnn", "--data", folder, "--epochs", "5"}, 0.908);
}

TEST(Accuracy, mlp_reaches_97_percent_on_mnist_in_one_epoch_or_two) {
  const std::string folder = data_folder("mnist");
  SAMEBYTES_NEED_DATA(folder);
  expect_accuracy({"train", "mlp", "--data", folder, "--epochs", "2"}, 0.97);
}

// A device without shared virtual memory: Mesa's software rasteriser. Its steps end where PoCL's do.
TEST(Accuracy, a_device_without_svm_trains_digits_to_the_same_loss) {
  const std::map<std::string, std::string> rusticl = {{"RUSTICL_ENABLE", "llvmpipe"}};
  const auto devices = run_command({"devices", "--json"}, rusticl).json();
  bool found = false;
  for (const auto& device : devices["devices"])
    found = found || device["name"].get<std::string>().find("llvmpipe") != std::string::npos;
  if (!found) GTEST_SKIP() << "no llvmpipe device (Debian's mesa-opencl-icd)";
  const auto expected = run_command({"train", "digits", "--steps", "15", "--json", "--quiet"}).json();
  for (const char* mode : {"hostptr", "copy"}) {
    auto environment = rusticl;
    environment["SAMEBYTES_MEMORY"] = mode;
    const auto result =
        run_command({"train", "digits", "--device", "llvmpipe", "--steps", "15", "--json", "--quiet"}, environment);
    ASSERT_EQ(result.status, 0) << result.err;
    const auto json = result.json();
    EXPECT_EQ(json["memory_mode"], mode);
    EXPECT_NEAR(json["train_loss"].get<double>(), expected["train_loss"].get<double>(), 1e-3);
    EXPECT_NEAR(json["test_loss"].get<double>(), expected["test_loss"].get<double>(), 1e-3);
    if (std::string(mode) == "hostptr") {
      EXPECT_EQ(json["bytes_copied_per_step"], 0);
    }
  }
}

}  // namespace
}  // namespace samebytes::testing
