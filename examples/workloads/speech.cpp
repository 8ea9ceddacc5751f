// speech: a small network of convolutions on log-mel spectrograms of spoken digits.
#include "samebytes/ops.h"
#include "samebytes/random.h"
#include "workloads/workload.h"

namespace samebytes::workloads {
namespace {

// Recordings at 8 kHz: frames of 32 ms every 16 ms, 40 mel filters, the first second of each.
constexpr int kRate = 8000, kSamples = 8000, kFft = 256, kHop = 128, kMels = 40;
constexpr int kFrames = 1 + kSamples / kHop;
constexpr int kSpeechFirst = 32, kSpeechSecond = 64, kSpeechThird = 64, kSpeechClasses = 10;
constexpr int kBands = kMels / 8;  // after three pools
constexpr float kSpeechDropout = 0.3f;

data::Split open_digits(const std::string& folder) {
  data::MelOptions mel{.rate = kRate, .mels = kMels};
  mel.spectrum.fft = kFft;
  mel.spectrum.hop = kHop;
  mel.floor = 1e-6;
  data::Split split = data::speech_digits(folder, {.samples = kSamples, .mel = mel});
  split.train = data::preload(split.train);
  split.test = data::preload(split.test);
  return split;
}

data::DatasetPtr noise_spectrograms(std::int64_t samples) {
  return data::generate(samples,
                        {{.name = "mel", .shape = {kFrames, kMels}}, {.name = "label", .shape = {}, .dtype = i32}},
                        [](std::int64_t index, std::span<const data::Field> sample) {
                          Random random({.seed = 1, .index = index});
                          for (float& v : sample[0].as<float>()) v = 2 * random.uniform() - 1;
                          sample[1].as<std::int32_t>()[0] = static_cast<std::int32_t>(random.below(kSpeechClasses));
                        });
}

nn::Sequential make_model() {
  nn::Sequential net;
  int in = 1;
  for (const int out : {kSpeechFirst, kSpeechSecond, kSpeechThird}) {
    net.add(nn::Conv2d({.in = in, .out = out, .kernel = 3, .pad = 1, .bias = false}));
    net.add(nn::BatchNorm({.features = out}));
    net.add(nn::Relu());
    net.add(nn::MaxPool2d({.kernel = 2}));
    in = out;
  }
  net.add(nn::Lambda([](const Array& x) { return mean(x, {1}); }, "MeanOverTime"));  // [N, bands, C]
  net.add(nn::Flatten());
  net.add(nn::Dropout({.p = kSpeechDropout}));
  net.add(nn::Linear({.in = kBands * in, .out = kSpeechClasses}));
  return net;
}

}  // namespace

Workload speech_workload(const WorkloadOptions& options) {
  data::Split split;
  std::vector<data::TransformPtr> prepare;
  if (!options.data.empty()) {
    split = open_digits(options.data);
    prepare.push_back(data::normalise(data::channel_moments(*split.train)));
  }
  return {.name = "speech",
          .defaults = {.epochs = 40, .batch = 16, .rate = 2e-3},
          .flops = FlopCount()
                       .conv(kFrames, kMels, 3, 1, kSpeechFirst)
                       .conv(kFrames / 2, kMels / 2, 3, kSpeechFirst, kSpeechSecond)
                       .conv(kFrames / 4, kMels / 4, 3, kSpeechSecond, kSpeechThird)
                       .linear(kBands * kSpeechThird, kSpeechClasses),
          .open =
              [options, split](int) {
                needed_data("speech", options, "a folder of spoken digits, {digit}_{speaker}_{take}.wav: --data DIR");
                return split;
              },
          .make_samples = noise_spectrograms,
          .prepare = prepare,
          .make_model = []() -> std::unique_ptr<nn::Module> { return std::make_unique<nn::Sequential>(make_model()); },
          .forward = [](nn::Module& net, const data::Batch& batch) { return net(unsqueeze(batch["mel"], 3)); },
          .loss = classifier_loss,
          .right = count_right};
}

}  // namespace samebytes::workloads
