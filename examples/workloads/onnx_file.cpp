#include "workloads/onnx_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include "samebytes/autograd.h"
#include "samebytes/data/labelled_folder.h"
#include "samebytes/ops.h"
#include "samebytes/random.h"

namespace samebytes::workloads {
namespace {

constexpr std::int64_t kUsualBatch = 32;
constexpr double kSmallestProbability = 1e-20;
constexpr std::size_t kNoiseValues = std::size_t{1} << 20;
const std::vector<float> kImageNetMean = {0.485f, 0.456f, 0.406f}, kImageNetDeviation = {0.229f, 0.224f, 0.225f};

struct ModelForm {
  std::string path;
  onnx::Summary summary;
  Symbols symbols;
  // The first field of a batch becomes the input: turned, then with these sizes behind the samples.
  std::vector<int> order = {};
  std::vector<std::int64_t> sizes = {};
  std::optional<std::int64_t> classes = {};  // of the data
  bool keeps_head = false;
};

std::optional<std::int64_t> number_of(const std::string& text) {
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size()) return {};
  return value;
}

bool is_real(onnx::Type type) {
  using onnx::Type;
  return type == Type::f32 || type == Type::f64 || type == Type::f16 || type == Type::bf16;
}

// Of a field that stands for an input: reals are made as f32 and cast on the device.
Dtype field_dtype(onnx::Type type) {
  if (is_real(type)) return f32;
  return type == onnx::Type::boolean ? bool_ : type == onnx::Type::u8 ? u8 : i32;
}

Array as_input(const Array& x, onnx::Type type) {
  switch (type) {
    case onnx::Type::f64: return astype(x, f64);
    case onnx::Type::f16: return astype(x, f16);
    case onnx::Type::bf16: return astype(x, bf16);
    default: return x;
  }
}

// The number of classes that the file says, 0 for an output of another form.
std::int64_t declared_classes(const onnx::Summary& summary) {
  if (summary.outputs.empty() || summary.outputs[0].sizes.size() != 2) return 0;
  return number_of(summary.outputs[0].sizes[1]).value_or(0);
}

std::optional<onnx::Head> head_of(const onnx::Model& model) {
  try {
    return model.head();
  } catch (const ArgumentError&) {
    return {};
  }
}

std::unique_ptr<nn::Module> made_model(const ModelForm& form) {
  // What only infers keeps its constants, which fold.
  const bool trains = form.classes || is_grad_enabled();
  auto model = std::make_unique<onnx::Model>(onnx::load(form.path, {.any_batch = true, .trainable_constants = trains}));
  if (!form.classes) return model;
  const std::int64_t own = model->head().classes;
  if (own != *form.classes && form.keeps_head)
    throw OptionError(
        fmt::format("{} gives {} classes and the data has {}; train it on this data first, or test with --load what "
                    "train --save wrote",
                    form.path, own, *form.classes));
  if (own != *form.classes) model->replace_head(*form.classes);
  return model;
}

// The first floating output, as logits.
Array model_output(const ModelForm& form, nn::Module& net, const data::Batch& batch) {
  auto& model = dynamic_cast<onnx::Model&>(net);
  std::map<std::string, onnx::Value> inputs;
  for (std::size_t i = 0; i < form.summary.inputs.size(); ++i) {
    const onnx::Port& port = form.summary.inputs[i];
    Array x = batch[i];
    if (!form.order.empty()) x = transpose(x, form.order);
    if (!form.sizes.empty()) {
      std::vector<std::int64_t> sizes = {batch.samples()};
      sizes.insert(sizes.end(), form.sizes.begin(), form.sizes.end());
      x = reshape(x, Shape(std::span<const std::int64_t>(sizes)));
    }
    inputs[port.name] = as_input(x, port.type);
  }
  const auto outputs = model.run(inputs);
  for (const std::string& name : model.outputs()) {
    const Array* const output = std::get_if<Array>(&outputs.at(name));
    if (output == nullptr || !is_floating(output->dtype())) continue;
    const auto head = head_of(model);
    return head && head->gives_probabilities ? log(*output + kSmallestProbability) : *output;
  }
  throw OptionError(form.path + " has no output of floating numbers to train or measure");
}

// Made-up samples: windows of one run of noise, so that making them costs a copy; zeros for integers, which may be
// indices, and ones for masks.
data::DatasetPtr made_up_samples(const ModelForm& form, std::int64_t samples) {
  const auto noise = std::make_shared<std::vector<float>>(kNoiseValues);
  Random random({.seed = 1});
  for (float& value : *noise) value = random.uniform();
  std::vector<data::FieldSpec> fields;
  std::vector<bool> is_mask;
  for (const onnx::Port& port : form.summary.inputs) {
    const std::vector<std::int64_t> sizes = sizes_of(port, form.symbols, 1);
    fields.push_back(
        {.name = port.name, .shape = Shape(std::span<const std::int64_t>(sizes)), .dtype = field_dtype(port.type)});
    is_mask.push_back(port.name.find("mask") != std::string::npos);
  }
  fields.push_back({.name = "label of the sample", .shape = {}, .dtype = i32});
  const auto classes = static_cast<std::uint32_t>(std::max<std::int64_t>(1, declared_classes(form.summary)));
  const auto make = [=](std::int64_t index, std::span<const data::Field> sample) {
    std::size_t at = static_cast<std::size_t>(index) * 7919 % noise->size();
    for (std::size_t i = 0; i + 1 < sample.size(); ++i) {
      if (sample[i].dtype != f32) {
        std::fill(sample[i].bytes.begin(), sample[i].bytes.end(), std::byte{0});
        if (is_mask[i] && sample[i].dtype == i32) std::ranges::fill(sample[i].as<std::int32_t>(), 1);
        if (is_mask[i] && sample[i].dtype != i32) std::ranges::fill(sample[i].bytes, std::byte{1});
        continue;
      }
      const std::span<float> values = sample[i].as<float>();
      for (std::size_t done = 0; done < values.size(); at = 0) {
        const std::size_t count = std::min(values.size() - done, noise->size() - at);
        std::copy_n(noise->begin() + static_cast<std::ptrdiff_t>(at), count,
                    values.begin() + static_cast<std::ptrdiff_t>(done));
        done += count;
      }
    }
    sample.back().as<std::int32_t>()[0] = static_cast<std::int32_t>(static_cast<std::uint32_t>(index) % classes);
  };
  return data::generate(samples, fields, make);
}

Array any_loss(const Array& output, const data::Batch& batch) {
  if (output.shape().rank() != 2) return mean(square(astype(output, f32)));  // to measure what is no classifier
  return cross_entropy(output, batch[batch.field_count() - 1]);
}

Array right_answers(const Array& logits, const data::Batch& batch) {
  return sum(astype(equal(argmax(logits), batch[1]), f32));
}

// How a model takes images: where its channels are, and its size, 0 where that is open.
struct ImageForm {
  std::int64_t channels = 3, height = 0, width = 0;
  bool channels_first = true;
};

ImageForm image_form(const onnx::Port& port, const Symbols& symbols) {
  std::vector<std::int64_t> sizes;
  for (const std::string& size : port.sizes) {
    const auto symbol = symbols.find(size);
    sizes.push_back(symbol != symbols.end() ? symbol->second : number_of(size).value_or(0));
  }
  const auto is_count = [](std::int64_t size) { return size == 1 || size == 3; };
  if (sizes.size() == 4) {
    if (is_count(sizes[1])) return {sizes[1], sizes[2], sizes[3], true};
    if (is_count(sizes[3])) return {sizes[3], sizes[1], sizes[2], false};
    throw OptionError(fmt::format("input {} [{}]: expected 1 or 3 channels", port.name, fmt::join(port.sizes, ", ")));
  }
  for (const std::int64_t channels : {1, 3}) {  // a row of pixels
    const std::int64_t pixels = sizes.back() / channels;
    const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(pixels))));
    if (sizes.back() > 0 && side * side * channels == sizes.back()) return {channels, side, side, true};
  }
  return {};
}

std::vector<float> channel_values(const std::vector<double>& given, std::int64_t channels, const char* option) {
  if (given.size() != 1 && std::ssize(given) != channels)
    throw OptionError(
        fmt::format("{}: expected one number, or {}, one for each channel; got {}", option, channels, given.size()));
  std::vector<float> values(given.begin(), given.end());
  values.resize(static_cast<std::size_t>(channels), values.front());
  return values;
}

data::NormaliseOptions moments_of(const WorkloadOptions& options, const data::LabelledFolder& folder,
                                  std::int64_t channels, std::vector<std::string>& notes) {
  if (options.mean.empty() != options.deviation.empty())
    throw OptionError("--mean and --std go together: one number each, or one for each channel");
  if (!options.mean.empty())
    return {.mean = channel_values(options.mean, channels, "--mean"),
            .deviation = channel_values(options.deviation, channels, "--std")};
  if (channels == 3) {
    notes.emplace_back("colours are normalised by ImageNet's means and deviations (--mean, --std)");
    return {.mean = kImageNetMean, .deviation = kImageNetDeviation};
  }
  data::NormaliseOptions own = data::channel_moments(*folder.split.train);
  notes.push_back(
      fmt::format("grey is normalised by the training set's mean {:.4f} and deviation {:.4f} (--mean, --std)",
                  own.mean[0], own.deviation[0]));
  return own;
}

void take_images(const ImageForm& image, bool is_flat, const Shape& field, ModelForm& form) {
  if (image.channels_first && image.channels > 1) form.order = {0, 3, 1, 2};
  if (is_flat)
    form.sizes = {field.size()};
  else if (image.channels == 1 && image.channels_first)
    form.sizes = {1, field[0], field[1]};
}

// [T, C] of a sample as [C, T], [T, C] or [T].
void take_series(const onnx::Port& port, const Shape& field, ModelForm& form) {
  const auto second = number_of(port.sizes.at(1)).value_or(0);
  if (port.sizes.size() == 2)
    form.sizes = {field.size()};
  else if (second == field[1])
    form.order = {0, 2, 1};
}

data::LabelledFolder read_data(const ModelForm& form, const WorkloadOptions& options, const ImageForm& image) {
  const onnx::Port& port = form.summary.inputs[0];
  data::LabelledFolderOptions reading{.height = image.height,
                                      .width = image.width,
                                      .channels = static_cast<int>(image.channels),
                                      .name = options.name.value_or("")};
  if (options.validation) reading.validation = *options.validation;
  if (port.sizes.size() < 4) {  // the longest axis is time
    for (std::size_t axis = 1; axis < port.sizes.size(); ++axis)
      reading.length = std::max(reading.length, number_of(port.sizes[axis]).value_or(0));
  }
  return data::labelled_folder(options.data, reading);
}

std::string head_note(const ModelForm& form) {
  const std::int64_t own = declared_classes(form.summary);
  if (own == *form.classes || form.keeps_head) return {};
  return fmt::format("the last linear layer{} gives way to a new one for {} classes",
                     own > 0 ? fmt::format(", for {} classes,", own) : "", *form.classes);
}

}  // namespace

Symbols symbols_of(const std::vector<std::string>& words) {
  Symbols symbols;
  for (const std::string& word : words) {
    const std::size_t sign = word.rfind('=');
    const auto size = sign == word.npos ? std::nullopt : number_of(word.substr(sign + 1));
    if (sign == 0 || !size || *size < 1) throw OptionError(fmt::format("--dim {}: expected SYMBOL=N", word));
    if (!symbols.emplace(word.substr(0, sign), *size).second)
      throw OptionError(fmt::format("--dim: {} comes twice", word.substr(0, sign)));
  }
  return symbols;
}

void check_symbols(const Symbols& symbols, const std::vector<onnx::Port>& inputs) {
  for (const auto& [name, size] : symbols) {
    bool is_known = false;
    for (const onnx::Port& port : inputs)
      for (std::size_t axis = 0; axis < port.sizes.size(); ++axis)
        is_known = is_known || name == port.sizes[axis] || name == fmt::format("{}.{}", port.name, axis);
    if (!is_known) throw OptionError(fmt::format("--dim {}={}: no input has a size of this name", name, size));
  }
}

std::vector<std::int64_t> sizes_of(const onnx::Port& port, const Symbols& symbols, std::size_t first) {
  std::vector<std::int64_t> sizes;
  for (std::size_t axis = first; axis < port.sizes.size(); ++axis) {
    const std::string &size = port.sizes[axis], place = fmt::format("{}.{}", port.name, axis);
    const auto fixed = number_of(size);
    auto symbol = fixed ? symbols.end() : symbols.find(place);
    if (symbol == symbols.end()) symbol = symbols.find(size);
    const auto number = symbol != symbols.end() ? symbol->second : fixed;
    if (!number)
      throw OptionError(fmt::format("input {} has the size {} along axis {}, which is open; say --dim {}=N", port.name,
                                    size, axis, size == "?" ? place : size));
    sizes.push_back(*number);
  }
  return sizes;
}

Array empty_input(onnx::Type type, const std::vector<std::int64_t>& sizes) {
  return as_input(zeros(Shape(std::span<const std::int64_t>(sizes)), field_dtype(type)), type);
}

Workload onnx_workload(const std::string& path, const WorkloadOptions& options) {
  ModelForm form{.path = path,
                 .summary = onnx::read_summary(path),
                 .symbols = symbols_of(options.dims),
                 .keeps_head = options.keeps_head};
  if (form.summary.inputs.empty()) throw OptionError(path + " has no input");
  check_symbols(form.symbols, form.summary.inputs);
  for (const onnx::Port& port : form.summary.inputs)
    if (port.sizes.empty()) throw OptionError(fmt::format("{}: input {} has no axis of samples", path, port.name));
  Workload result{.name = std::filesystem::path(path).stem().string(),
                  .defaults = {.epochs = 5, .batch = kUsualBatch, .rate = 3e-4, .weight_decay = 1e-2},
                  .flops = {},
                  .open = {},
                  .make_model = {},
                  .loss = any_loss};
  data::LabelledFolder folder;
  if (!options.data.empty()) {
    const onnx::Port& port = form.summary.inputs[0];
    if (form.summary.inputs.size() != 1 || !is_real(port.type) || port.sizes.size() < 2)
      throw OptionError(path +
                        ": expected one input of images, series or sounds; `samebytes inspect` shows what it has");
    const ImageForm image = image_form(port, form.symbols);
    folder = read_data(form, options, image);
    const Shape& field = folder.split.train->fields()[0].shape;
    if (folder.kind == "image") {
      take_images(image, port.sizes.size() == 2, field, form);
      result.prepare = {data::normalise(moments_of(options, folder, field[2], result.notes))};
    } else {
      take_series(port, field, form);
    }
    form.classes = folder.classes;
    if (std::string note = head_note(form); !note.empty()) result.notes.push_back(std::move(note));
    result.right = right_answers;
  }
  result.open = [split = folder.split, options](int) {
    needed_data("an ONNX model", options,
                "a folder with a folder for each class (PNG, JPEG or WAV), MNIST's or CIFAR's files, or a set of the "
                "UCR archive: --data DIR");
    return split;
  };
  result.make_samples = [form](std::int64_t samples) { return made_up_samples(form, samples); };
  result.make_model = [form] { return made_model(form); };
  result.needs_own_class = true;  // it records its graphs itself
  result.forward = [form](nn::Module& net, const data::Batch& batch) { return model_output(form, net, batch); };
  result.save_model = [](nn::Module& net, const std::string& file) {
    onnx::save(file, dynamic_cast<onnx::Model&>(net));
  };
  return result;
}

}  // namespace samebytes::workloads
