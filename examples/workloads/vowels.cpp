// vowels: an LSTM (models.h) on the Japanese vowels of nine speakers, sequences of 7 to 29 steps with 12 values each,
// padded to one length; the steps behind a sequence's end do not count.
#include "samebytes/models.h"
#include "samebytes/random.h"
#include "workloads/workload.h"

namespace samebytes::workloads {
namespace {

constexpr int kVowelSteps = 29, kVowelValues = 12, kVowelClasses = 9, kVowelHidden = 96;
constexpr std::uint32_t kShortest = 7;

data::DatasetPtr noise_sequences(std::int64_t samples) {
  return data::generate(samples,
                        {{.name = "series", .shape = {kVowelSteps, kVowelValues}},
                         {.name = "label", .shape = {}, .dtype = i32},
                         {.name = "length", .shape = {}, .dtype = i32}},
                        [](std::int64_t index, std::span<const data::Field> sample) {
                          Random random({.seed = 1, .index = index});
                          for (float& v : sample[0].as<float>()) v = 2 * random.uniform() - 1;
                          sample[1].as<std::int32_t>()[0] = static_cast<std::int32_t>(random.below(kVowelClasses));
                          sample[2].as<std::int32_t>()[0] =
                              static_cast<std::int32_t>(kShortest + random.below(kVowelSteps - kShortest + 1));
                        });
}

}  // namespace

Workload vowels_workload(const WorkloadOptions& options) {
  constexpr double kGates = 4, kDirections = 2;
  return {.name = "vowels",
          .defaults = {.epochs = 60, .batch = 32, .rate = 3e-3, .clip_norm = 1},
          .flops = FlopCount()
                       .linear(kVowelValues, kGates * kVowelHidden, kVowelSteps * kDirections)
                       .linear(kVowelHidden, kGates * kVowelHidden, kVowelSteps * kDirections)
                       .linear(kDirections * kVowelHidden, kVowelClasses),
          .open =
              [options](int) {
                return data::ucr(
                    needed_data("vowels", options, "a folder with JapaneseVowels_TRAIN.ts and _TEST.ts: --data DIR"),
                    "JapaneseVowels", {.lengths = true});
              },
          .make_samples = noise_sequences,
          .make_model = []() -> std::unique_ptr<nn::Module> {
            return std::make_unique<models::LstmClassifier>(models::LstmClassifierOptions{.in = kVowelValues,
                                                                                          .hidden = kVowelHidden,
                                                                                          .classes = kVowelClasses,
                                                                                          .bidirectional = true,
                                                                                          .dropout = 0.3});
          },
          .forward = [](nn::Module& net, const data::Batch& batch) { return net(batch["series"], batch["length"]); },
          .loss = classifier_loss,
          .right = count_right};
}

}  // namespace samebytes::workloads
