// series: a residual network over time (models.h) on one set of the UCR archive, named by --name.
#include "samebytes/models.h"
#include "samebytes/random.h"
#include "workloads/workload.h"

namespace samebytes::workloads {
namespace {

constexpr int kBenchLength = 128, kBenchClasses = 10;
constexpr std::int64_t kSeriesWidth = 64;

struct Form {
  std::int64_t length = kBenchLength, channels = 1, classes = kBenchClasses;
};

FlopCount count_series_flops(const Form& form) {
  FlopCount flops;
  const auto length = static_cast<int>(form.length);
  auto in = static_cast<int>(form.channels);
  for (const std::int64_t width : {kSeriesWidth, 2 * kSeriesWidth, 2 * kSeriesWidth}) {
    const auto out = static_cast<int>(width);
    flops.conv1d(length, 7, in, out).conv1d(length, 5, out, out).conv1d(length, 3, out, out);
    if (in != out) flops.conv1d(length, 1, in, out);
    in = out;
  }
  return flops.linear(in, static_cast<double>(form.classes));
}

data::DatasetPtr noise_series(std::int64_t samples, const Form& form) {
  return data::generate(
      samples,
      {{.name = "series", .shape = {form.length, form.channels}}, {.name = "label", .shape = {}, .dtype = i32}},
      [form](std::int64_t index, std::span<const data::Field> sample) {
        Random random({.seed = 1, .index = index});
        for (float& v : sample[0].as<float>()) v = 2 * random.uniform() - 1;
        sample[1].as<std::int32_t>()[0] =
            static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(form.classes)));
      });
}

}  // namespace

Workload series_workload(const WorkloadOptions& options) {
  Form form;
  data::Split split;
  if (!options.data.empty()) {
    if (!options.name) throw OptionError("series reads one set of the folder --data: --name SET, such as GunPoint");
    split = data::ucr(options.data, *options.name, {.normalise = true});
    const Shape& shape = split.train->fields()[0].shape;
    form = {.length = shape[0], .channels = shape[1], .classes = static_cast<std::int64_t>(split.classes.size())};
  }
  return {.name = "series",
          .defaults = {.epochs = 100, .batch = 16, .rate = 1e-3, .weight_decay = 1e-2},
          .flops = count_series_flops(form),
          .open =
              [options, split](int) {
                needed_data("series", options, "a folder of the UCR archive: --data DIR --name SET");
                return split;
              },
          .make_samples = [form](std::int64_t samples) { return noise_series(samples, form); },
          .make_model = [form]() -> std::unique_ptr<nn::Module> {
            return std::make_unique<models::ResNet1d>(
                models::ResNet1dOptions{.in = form.channels, .classes = form.classes, .width = kSeriesWidth});
          },
          .loss = classifier_loss,
          .right = count_right};
}

}  // namespace samebytes::workloads
