#include "workloads/workload.h"

#include <fmt/format.h>

#include <map>

#include "samebytes/ops.h"
#include "samebytes/random.h"
#include "samebytes/train/fit.h"

namespace samebytes::workloads {

const std::vector<WorkloadEntry>& all() {
  static const std::vector<WorkloadEntry> entries = {
      {"digits", "conv 32, 32, pool, 64, pool, 10, batch norm, dropout; its data is built in", {}, digits_workload},
      {"mlp", "784-512-256-10, ReLU; reads an MNIST-shaped folder (--data)", {}, mlp_workload},
      {"cnn", "conv 32, pool, conv 64, pool, 128, 10, ReLU; reads an MNIST-shaped folder (--data)", {}, cnn_workload},
      {"resnet20",
       "20-layer residual network on 32x32 images; reads CIFAR-10's binary files (--data)",
       {},
       resnet20_workload},
      {"series",
       "1-D residual network; reads one set (--name) of the UCR archive (--data)",
       {"--name"},
       series_workload},
      {"transit",
       "two 1-D branches that find planets in folded light curves; made up, or measured (--data)",
       {},
       transit_workload},
      {"speech",
       "3 convolutions on log-mel spectrograms; reads a folder of spoken digits (--data)",
       {},
       speech_workload},
      {"gpt",
       "GPT-2's architecture (--size, --context); reads a text (--data)",
       {"--size", "--context", "--tokenizer"},
       gpt_workload},
      {"vowels", "LSTM on padded sequences; reads the Japanese vowels (--data)", {}, vowels_workload},
  };
  return entries;
}

namespace {

std::vector<data::TransformPtr> transforms_of(const Workload& workload) {
  std::vector<data::TransformPtr> all = workload.augment;
  all.insert(all.end(), workload.prepare.begin(), workload.prepare.end());
  return all;
}

}  // namespace

Workload with_hollow_data(const Workload& workload) {
  Workload result = workload;
  result.augment.clear();
  result.prepare.clear();
  result.baselines = nullptr;
  result.open = [workload](int fold) {
    const data::Split split = workload.open(fold);
    data::Split empty = split;
    empty.train = train::hollow(split.train, transforms_of(workload));
    empty.test = train::hollow(split.test, workload.prepare);
    return empty;
  };
  result.make_samples = [workload](std::int64_t samples) {
    return train::hollow(workload.make_samples(1), transforms_of(workload), samples);
  };
  return result;
}

Workload with_data_kept(const Workload& workload) {
  Workload result = workload;
  result.open = [open = workload.open, kept = std::make_shared<std::map<int, data::Split>>()](int fold) {
    const auto found = kept->find(fold);
    return found != kept->end() ? found->second : kept->emplace(fold, open(fold)).first->second;
  };
  return result;
}

Array classifier_loss(const Array& logits, const data::Batch& batch) { return cross_entropy(logits, batch[1]); }

Array count_right(const Array& logits, const data::Batch& batch) {
  return sum(astype(equal(argmax(logits), batch[1]), f32));
}

data::DatasetPtr noise_images(std::int64_t samples, int height, int width, int channels) {
  HostArray images(Shape{samples, height, width, channels}, f32);
  HostArray labels(Shape{samples}, i32);
  constexpr std::uint32_t kClasses = 10;
  for (std::int64_t i = 0; i < samples; ++i) {
    Random random({.seed = 1, .index = i});
    labels.as<std::int32_t>()[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(random.below(kClasses));
    const std::int64_t pixels = std::int64_t{height} * width * channels;
    for (float& pixel :
         images.as<float>().subspan(static_cast<std::size_t>(i * pixels), static_cast<std::size_t>(pixels)))
      pixel = 2 * random.uniform() - 1;
  }
  return data::in_memory({{"image", std::move(images)}, {"label", std::move(labels)}});
}

std::string needed_data(const char* workload, const WorkloadOptions& options, const char* what) {
  if (options.data.empty()) throw OptionError(fmt::format("{} reads its data from {}", workload, what));
  return options.data;
}

}  // namespace samebytes::workloads
