// resnet20: the residual network of 20 layers for 32x32 images (models.h) on CIFAR-10, training images cropped out of a
// border of four pixels and flipped, every pixel normalised by the published moments of the training set.
#include "samebytes/models.h"
#include "workloads/workload.h"

namespace samebytes::workloads {
namespace {

constexpr int kDepth = 20, kCifarSide = 32, kColours = 3, kPad = 4;

// Three stages of three blocks; the first block of the later stages halves the image and has a 1x1 shortcut.
FlopCount count_resnet_flops() {
  FlopCount flops;
  flops.conv(kCifarSide, kCifarSide, 3, kColours, 16);
  int in = 16;
  for (const int stage : {0, 1, 2}) {
    const int side = kCifarSide >> stage, out = 16 << stage;
    for (const int block : {0, 1, 2}) {
      if (stage > 0 && block == 0) flops.conv(side, side, 1, in, out);
      flops.conv(side, side, 3, in, out).conv(side, side, 3, out, out);
      in = out;
    }
  }
  return flops.linear(in, 10);
}

}  // namespace

Workload resnet20_workload(const WorkloadOptions& options) {
  return {.name = "resnet20",
          .defaults = {.epochs = 30, .batch = 64, .rate = 4e-3, .weight_decay = 5e-2},
          .flops = count_resnet_flops(),
          .open =
              [options](int) {
                return data::cifar10(needed_data("resnet20", options,
                                                 "a folder with CIFAR-10's binary files: --data DIR "
                                                 "(`samebytes data cifar10` says where to get them)"));
              },
          .make_samples = [](std::int64_t samples) { return noise_images(samples, kCifarSide, kCifarSide, kColours); },
          .augment = {data::shift({.pixels = kPad}), data::with_probability(0.5, data::horizontal_flip())},
          .prepare = {data::normalise({.mean = {0.4914f, 0.4822f, 0.4465f}, .deviation = {0.2470f, 0.2435f, 0.2616f}})},
          .make_model = []() -> std::unique_ptr<nn::Module> { return std::make_unique<models::ResNet>(kDepth); },
          .loss = classifier_loss,
          .right = count_right};
}

}  // namespace samebytes::workloads
