// cnn: two convolutions and two linear layers on MNIST-shaped folders. conv 32 3x3 pad 1, ReLU, max-pool 2, conv 64 3x3
// pad 1, ReLU, max-pool 2, linear 128, ReLU, linear 10.
#include "workloads/workload.h"

namespace samebytes::workloads {

Workload cnn_workload(const WorkloadOptions& options) {
  constexpr int kSide = 28, kHalf = kSide / 2, kQuarter = kSide / 4;
  constexpr int kFirst = 32, kSecond = 64, kHidden = 128, kClasses = 10;
  constexpr int kFlat = kQuarter * kQuarter * kSecond;
  return {.name = "cnn",
          .defaults = {.epochs = 3, .batch = 64, .rate = 2e-3},
          .flops = FlopCount()
                       .conv(kSide, kSide, 3, 1, kFirst)
                       .conv(kHalf, kHalf, 3, kFirst, kSecond)
                       .linear(kFlat, kHidden)
                       .linear(kHidden, kClasses),
          .open = [options](int) { return data::mnist(needed_data("cnn", options, kMnistFolder)); },
          .make_samples = [](std::int64_t samples) { return noise_images(samples, kSide, kSide); },
          .make_model = []() -> std::unique_ptr<nn::Module> {
            return std::make_unique<nn::Sequential>(
                nn::Conv2d({.in = 1, .out = kFirst, .kernel = 3, .pad = 1}), nn::Relu(), nn::MaxPool2d({.kernel = 2}),
                nn::Conv2d({.in = kFirst, .out = kSecond, .kernel = 3, .pad = 1}), nn::Relu(),
                nn::MaxPool2d({.kernel = 2}), nn::Flatten(), nn::Linear({.in = kFlat, .out = kHidden}), nn::Relu(),
                nn::Linear({.in = kHidden, .out = kClasses}));
          },
          .loss = classifier_loss,
          .right = count_right};
}

}  // namespace samebytes::workloads
