#include "cli/workload.h"

#include <fmt/format.h>

#include "cli/text.h"
#include "cli/usage_error.h"
#include "samebytes/ops.h"
#include "samebytes/random.h"

namespace samebytes::cli {

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all = {digits_workload(), mlp_workload(), cnn_workload()};
  return all;
}

const Workload& find_workload(const std::string& name) {
  std::vector<std::string> names;
  for (const Workload& workload : workloads()) {
    if (workload.name == name) return workload;
    names.push_back(workload.name);
  }
  const std::string near = nearest_word(name, names);
  throw UsageError(fmt::format("there is no workload {}{}; there are {}", name,
                               near.empty() ? "" : ", did you mean " + near + "?", list_text(names)));
}

Array classifier_loss(const Array& logits, const data::Batch& batch) { return cross_entropy(logits, batch[1]); }

Array count_right(const Array& logits, const data::Batch& batch) {
  return sum(astype(equal(argmax(logits), batch[1]), f32));
}

data::DatasetPtr noise_images(std::int64_t samples, int height, int width) {
  HostArray images(Shape{samples, height, width, 1}, f32);
  HostArray labels(Shape{samples}, i32);
  constexpr std::uint32_t kClasses = 10;
  for (std::int64_t i = 0; i < samples; ++i) {
    Random random({.seed = 1, .index = i});
    labels.as<std::int32_t>()[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(random.below(kClasses));
    const std::int64_t pixels = std::int64_t{height} * width;
    for (float& pixel :
         images.as<float>().subspan(static_cast<std::size_t>(i * pixels), static_cast<std::size_t>(pixels)))
      pixel = 2 * random.uniform() - 1;
  }
  return data::in_memory({{"image", std::move(images)}, {"label", std::move(labels)}});
}

data::Split open_mnist(const char* workload, const std::string& folder) {
  if (folder.empty())
    throw UsageError(fmt::format("{} reads its data from a folder with the four MNIST files: --data DIR", workload));
  return data::mnist(folder);
}

}  // namespace samebytes::cli
