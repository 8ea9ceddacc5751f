// digits: a small network with batch norm and dropout on the UCI digits that are part of the library: two 3x3
// convolutions of 32 channels, one of 64, training images shifted by one pixel at most.
#include "workloads/workload.h"

namespace samebytes::workloads {

Workload digits_workload(const WorkloadOptions&) {
  constexpr int kSide = 8, kHalf = kSide / 2, kQuarter = kSide / 4;
  constexpr int kFirst = 32, kSecond = 64, kClasses = 10;
  constexpr int kFlat = kQuarter * kQuarter * kSecond;
  constexpr double kDropout = 0.3;
  return {.name = "digits",
          .defaults = {.epochs = 20, .batch = 64, .rate = 3e-3},
          .flops = FlopCount()
                       .conv(kSide, kSide, 3, 1, kFirst)
                       .conv(kSide, kSide, 3, kFirst, kFirst)
                       .conv(kHalf, kHalf, 3, kFirst, kSecond)
                       .linear(kFlat, kClasses),
          .open = [](int) { return data::digits(); },
          .make_samples = [](std::int64_t samples) { return noise_images(samples, kSide, kSide); },
          .augment = {data::shift({.pixels = 1})},
          .make_model = []() -> std::unique_ptr<nn::Module> {
            return std::make_unique<nn::Sequential>(
                nn::Conv2d({.in = 1, .out = kFirst, .kernel = 3, .pad = 1, .bias = false}),
                nn::BatchNorm({.features = kFirst}), nn::Relu(),
                nn::Conv2d({.in = kFirst, .out = kFirst, .kernel = 3, .pad = 1, .bias = false}),
                nn::BatchNorm({.features = kFirst}), nn::Relu(), nn::MaxPool2d({.kernel = 2}),
                nn::Conv2d({.in = kFirst, .out = kSecond, .kernel = 3, .pad = 1, .bias = false}),
                nn::BatchNorm({.features = kSecond}), nn::Relu(), nn::MaxPool2d({.kernel = 2}), nn::Flatten(),
                nn::Dropout({.p = kDropout}), nn::Linear({.in = kFlat, .out = kClasses}));
          },
          .loss = classifier_loss,
          .right = count_right};
}

}  // namespace samebytes::workloads
