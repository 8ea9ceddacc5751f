#include "cli/workload.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/text.h"
#include "cli/usage_error.h"
#include "samebytes/ops.h"
#include "samebytes/random.h"

namespace samebytes::cli {

const std::vector<WorkloadEntry>& workloads() {
  static const std::vector<WorkloadEntry> all = {
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
  return all;
}

Workload make_workload(const std::string& name, const WorkloadOptions& options) {
  std::vector<std::string> names;
  for (const WorkloadEntry& entry : workloads()) {
    names.push_back(entry.name);
    if (entry.name != name) continue;
    const auto check_option = [&](const char* option, bool is_given) {
      if (is_given && std::find(entry.takes.begin(), entry.takes.end(), option) == entry.takes.end())
        throw UsageError(fmt::format("{} has no {}", name, option));
    };
    check_option("--size", options.size.has_value());
    check_option("--context", options.context.has_value());
    check_option("--name", options.name.has_value());
    check_option("--tokenizer", options.tokenizer.has_value());
    return entry.make(options);
  }
  const std::string near = nearest_word(name, names);
  throw UsageError(fmt::format("there is no workload {}{}; there are {}", name,
                               near.empty() ? "" : ", did you mean " + near + "?", list_text(names)));
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
  if (options.data.empty()) throw UsageError(fmt::format("{} reads its data from {}", workload, what));
  return options.data;
}

Workload with_head(const Workload& workload, const Options& options) {
  const HeadOptions& head = options.head;
  if (!head.is_chunked()) {
    if (head.is_late) throw UsageError("--late-head-gradient needs --head-chunks N|auto, with N above 1");
    return workload;
  }
  if (!workload.chunked_loss || workload.right || workload.is_binary)  // those need the output
    throw UsageError("--head-chunks: " + workload.name + " has no product with classes at its end that could be cut");
  Workload result = workload;
  result.whole_loss = [loss = workload.chunked_loss, head](nn::Module& net, const data::Batch& batch) {
    return loss(net, batch, head);
  };
  return result;
}

}  // namespace samebytes::cli
