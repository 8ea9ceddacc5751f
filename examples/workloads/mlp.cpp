// mlp: 784-512-256-10 with ReLU, on MNIST-shaped folders.
#include "workloads/workload.h"

namespace samebytes::workloads {

Workload mlp_workload(const WorkloadOptions& options) {
  constexpr int kSide = 28, kPixels = kSide * kSide, kFirst = 512, kSecond = 256, kClasses = 10;
  return {.name = "mlp",
          .defaults = {.epochs = 5, .batch = 64, .rate = 1e-3},
          .flops = FlopCount().linear(kPixels, kFirst).linear(kFirst, kSecond).linear(kSecond, kClasses),
          .open = [options](int) { return data::mnist(needed_data("mlp", options, kMnistFolder)); },
          .make_samples = [](std::int64_t samples) { return noise_images(samples, kSide, kSide); },
          .make_model = []() -> std::unique_ptr<nn::Module> {
            return std::make_unique<nn::Sequential>(nn::Flatten(), nn::Linear({.in = kPixels, .out = kFirst}),
                                                    nn::Relu(), nn::Linear({.in = kFirst, .out = kSecond}), nn::Relu(),
                                                    nn::Linear({.in = kSecond, .out = kClasses}));
          },
          .loss = classifier_loss,
          .right = count_right};
}

}  // namespace samebytes::workloads
