#include "samebytes/nn/quantize.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "nn/quantized.h"
#include "nn/targets.h"
#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/figures.h"
#include "samebytes/nn/lora.h"
#include "samebytes/ops.h"

namespace samebytes::nn {
namespace {

constexpr std::int64_t kMostProducts = 65536;  // of a sum: int8.h

struct Found {
  std::string name;
  const Parameter* weight;
  int groups;
};

// Every weight that may multiply in int8, by the name of its layer; a shared one once for each place.
class Finder final : public Visitor {
 public:
  explicit Finder(Module& model) { model.visit(*this); }
  void parameter(std::string_view, const Parameter&, Layout) override {}
  void buffer(std::string_view, const Buffer&) override {}
  void child(std::string_view name, Module& module) override {
    std::string path = joined(name);
    std::swap(path, path_);
    module.visit(*this);
    std::swap(path, path_);
  }
  void quantizable(std::string_view name, const Parameter& weight, int groups) override {
    found_.push_back({joined(name), &weight, groups});
  }
  const std::vector<Found>& found() const { return found_; }

 private:
  std::string joined(std::string_view name) const {
    if (name.empty()) return path_;
    return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
  }
  std::string path_;
  std::vector<Found> found_;
};

std::int64_t products_of(const Shape& weight) {
  return weight.rank() == 2 ? weight[1] : weight.size() / std::max<std::int64_t>(weight.back(), 1);
}

// The layers that are asked for; throws before anything is changed.
std::vector<Found> chosen(Module& model, const QuantizeOptions& options, std::vector<std::string>* kept) {
  if (is_quantized(model))
    throw ArgumentError("quantize: " + model.describe() + " is quantized already; dequantize() first");
  if (has_lora(model))
    throw ArgumentError("quantize: " + model.describe() + " has adapters; merge_lora() and unload_lora() first");
  const Finder finder(model);
  std::vector<std::string> names;
  for (const Found& layer : finder.found()) names.push_back(layer.name);
  Choice skip(options.skip, "quantize", "skip");
  std::vector<Found> layers;
  for (const Found& layer : finder.found()) {
    const bool fits = layer.groups == 1 && layer.weight->dtype() != f64 && layer.weight->size() > 0 &&
                      products_of(layer.weight->shape()) <= kMostProducts;
    if (skip.takes(layer.name) || !fits)
      kept->push_back(layer.name);
    else
      layers.push_back(layer);
  }
  skip.require_all_used("layer", names);
  if (layers.empty())
    throw ArgumentError("quantize: " + model.describe() +
                        " has no layer that multiplies in int8: linear ones, and convolutions of one group");
  return layers;
}

void forget(const std::vector<Found>& layers) {
  for (const Found& layer : layers) layer.weight->set_quantized(nullptr);
}

QuantizeReport quantized(Module& model, const std::vector<Found>& layers,
                         const std::vector<std::optional<Int8Range>>& ranges, std::vector<std::string> kept) {
  std::vector<std::shared_ptr<const QuantizedWeight>> made;
  for (std::size_t i = 0; i < layers.size(); ++i)
    made.push_back(std::make_shared<const QuantizedWeight>(int8_weight(*layers[i].weight), ranges[i]));
  QuantizeReport report;
  report.kept = std::move(kept);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].weight->set_quantized(made[i]);
    report.layers.push_back({layers[i].name, layers[i].weight->shape(), ranges[i]});
    report.bytes += made[i]->bytes();
  }
  model.eval();
  return report;
}

std::string counted(std::size_t n, const char* one, const char* several) {
  return std::to_string(n) + (n == 1 ? one : several);
}

}  // namespace

void SeenRange::add(const Array& x) {
  if (x.size() == 0) return;
  const NoGrad no_grad;
  const auto low = static_cast<float>(min(x).value()), high = static_cast<float>(max(x).value());
  if (!std::isfinite(low) || !std::isfinite(high))
    throw ArgumentError("quantize: the input of " + (layer_.empty() ? "the model" : layer_) +
                        " has values that are not finite");
  range_ = range_ ? Int8Range{std::min(range_->low, low), std::max(range_->high, high)} : Int8Range{low, high};
}

const Int8Weight& QuantizedWeight::form(const Parameter& weight) const {
  if (!form_.is_of(weight))
    throw ArgumentError("a weight " + weight.shape().to_string() +
                        " was overwritten after quantize(); dequantize() and quantize() the model again");
  return form_;
}

std::int64_t QuantizedWeight::bytes() const {
  return form_.panels.size() + 4 * (form_.totals.size() + form_.scales.size());
}

std::shared_ptr<const QuantizedWeight> QuantizedWeight::of_copy(const Parameter& weight, const Parameter& copy) const {
  if (seen_ || !form_.is_of(weight)) return nullptr;
  Int8Weight form = form_;
  form.note(copy);
  return std::make_shared<const QuantizedWeight>(std::move(form), range_);
}

namespace {

template <class Int8, class Plain>
Array multiplied(const Array& x, const Parameter& weight, const Int8& int8, const Plain& plain) {
  const QuantizedWeight& quantized = *weight.quantized();
  if (!quantized.seen()) return int8(quantized.form(weight), quantized.range());
  quantized.seen()->add(x);
  return plain();
}

}  // namespace

Array quantized_linear(const Array& x, const Parameter& weight, const Array& bias) {
  return multiplied(
      x, weight,
      [&](const Int8Weight& form, const std::optional<Int8Range>& range) { return int8_linear(x, form, bias, range); },
      [&] { return linear(x, astype(weight, x.dtype()), bias); });
}

Array quantized_conv(const Array& x, const Parameter& weight, const Array& bias, const samebytes::Conv1dOptions& o) {
  return multiplied(
      x, weight, [&](const Int8Weight& form, const auto& range) { return int8_conv1d(x, form, bias, o, range); },
      [&] { return conv1d(x, weight, bias, o); });
}

Array quantized_conv(const Array& x, const Parameter& weight, const Array& bias, const samebytes::Conv2dOptions& o) {
  return multiplied(
      x, weight, [&](const Int8Weight& form, const auto& range) { return int8_conv2d(x, form, bias, o, range); },
      [&] { return conv2d(x, weight, bias, o); });
}

QuantizeReport quantize(Module& model, const QuantizeOptions& options) {
  std::vector<std::string> kept;
  const std::vector<Found> layers = chosen(model, options, &kept);
  return quantized(model, layers, std::vector<std::optional<Int8Range>>(layers.size()), std::move(kept));
}

QuantizeReport quantize(Module& model, const std::function<void()>& run, const QuantizeOptions& options) {
  std::vector<std::string> kept;
  const std::vector<Found> layers = chosen(model, options, &kept);
  std::vector<std::pair<Module*, bool>> modes;  // from the outermost module on, as train() sets those below
  for (const Module::NamedModule& each : model.modules()) modes.emplace_back(each.module, each.module->is_training());
  std::vector<std::optional<Int8Range>> ranges;
  try {
    for (const Found& layer : layers)
      layer.weight->set_quantized(std::make_shared<const QuantizedWeight>(std::make_shared<SeenRange>(layer.name)));
    model.eval();
    const NoGrad no_grad;
    run();
    for (const Found& layer : layers) {
      ranges.push_back(layer.weight->quantized()->seen()->range());
      if (!ranges.back())
        throw ArgumentError("quantize: " + layer.name +
                            " saw no input; skip it, or calibrate with inputs that reach it");
    }
    forget(layers);
    return quantized(model, layers, ranges, std::move(kept));
  } catch (...) {
    forget(layers);
    for (const auto& [module, was_training] : modes) module->train(was_training);
    throw;
  }
}

QuantizeReport quantize(Module& model, std::span<const Array> calibration, const QuantizeOptions& options) {
  if (calibration.empty()) throw ArgumentError("quantize: the calibration has no batch");
  return quantize(
      model,
      [&] {
        for (const Array& x : calibration) model(x).eval();
      },
      options);
}
QuantizeReport quantize(Module& model, std::initializer_list<Array> calibration, const QuantizeOptions& options) {
  return quantize(model, std::span(calibration.begin(), calibration.size()), options);
}

void dequantize(Module& model) { forget(Finder(model).found()); }

bool is_quantized(Module& model) {
  const Finder finder(model);
  return std::any_of(finder.found().begin(), finder.found().end(),
                     [](const Found& layer) { return layer.weight->quantized() != nullptr; });
}

std::string QuantizeReport::to_text() const {
  std::string text = counted(layers.size(), " layer multiplies", " layers multiply") + " in int8 (" +
                     bytes_text(static_cast<std::size_t>(bytes)) + ")";
  if (kept.empty()) return text;
  text += ", " + counted(kept.size(), " does not:", " do not:");
  for (const std::string& name : kept) text += (&name == &kept.front() ? " " : ", ") + name;
  return text;
}

}  // namespace samebytes::nn
