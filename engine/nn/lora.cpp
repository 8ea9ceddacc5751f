#include "samebytes/nn/lora.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

#include "nn/grouped.h"
#include "nn/projection.h"
#include "nn/quantized.h"
#include "nn/targets.h"
#include "samebytes/nn/quantize.h"
#include "samebytes/ops.h"

namespace samebytes::nn {
namespace {

class Walk final : public Visitor {
 public:
  using Visit = std::function<void(const std::string&, const Array&, Adapter&)>;
  using Enter = std::function<void(const std::string&, Module&)>;
  explicit Walk(Visit visit, Enter enter = {}) : visit_(std::move(visit)), enter_(std::move(enter)) {}
  void parameter(std::string_view, const Parameter&, Layout) override {}
  void buffer(std::string_view, const Buffer&) override {}
  void child(std::string_view name, Module& module) override { walk(joined(name), module); }
  void projection(std::string_view name, const Array& weight, Adapter& adapter) override {
    visit_(joined(name), weight, adapter);
  }

 private:
  std::string joined(std::string_view name) const {
    if (name.empty()) return path_;
    return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
  }
  void walk(std::string path, Module& module) {
    if (enter_) enter_(path, module);
    std::swap(path, path_);
    module.visit(*this);
    std::swap(path, path_);
  }

  Visit visit_;
  Enter enter_;
  std::string path_;
};

// Calls visit(name, weight, adapter) for every linear layer of a module, and enter(name, module) for every module, from
// the top down.
void visit_projections(Module& module, Walk::Visit visit, Walk::Enter enter = {}) {
  Walk walk(std::move(visit), std::move(enter));
  walk.child("", module);
}

bool is_attention(const std::string& name) { return last_part(name) == "c_attn" || last_part(name) == "in_proj"; }

// Visits every adapter once, with its layer's weight.
void each_adapter(const char* op, Module& model, const std::function<void(Lora&, const Array&)>& f) {
  std::set<const Lora*> seen;
  visit_projections(model, [&](const std::string&, const Array& weight, Adapter& adapter) {
    if (adapter && seen.insert(adapter.get()).second) f(*adapter, weight);
  });
  if (seen.empty())
    throw ArgumentError(std::string(op) + ": " + model.describe() + " has no adapters; apply_lora() first");
}

}  // namespace

Lora::Lora(const Array& weight, const LoraOptions& options) : options_(options) {
  require_positive("Lora", "rank", options.rank);
  if (!(options.alpha > 0.0 && std::isfinite(options.alpha)))
    throw ArgumentError("Lora: alpha must be above 0, got " + std::to_string(options.alpha));
  require_dropout("Lora", options.dropout);
  if (!weight.defined() || weight.shape().rank() != 2 || !is_floating(weight.dtype()))
    throw ArgumentError("Lora: the weight must be floating [out, in], got " +
                        (weight.defined() ? std::string(name_of(weight.dtype())) + " " + weight.shape().to_string()
                                          : std::string("an empty handle")));
  const auto rank = static_cast<double>(options.rank);
  scale_ = options.alpha / (options.rank_stabilized ? std::sqrt(rank) : rank);
  const Dtype dtype = weight.dtype() == f64 ? f64 : f32;
  const std::int64_t out = weight.shape()[0], in = weight.shape()[1];
  a_ = uniform_cell({options.rank, in}, in, dtype, "lora_A.weight");
  b_ = Parameter(cell(zeros({out, options.rank}, dtype), "lora_B.weight"));
}

Array Lora::forward(const Array& x) {
  const Array kept = is_training() && options_.dropout > 0 ? dropout(x, options_.dropout) : x;
  return linear(linear(kept, a_) * scale_, b_);
}

void Lora::visit(Visitor& visitor) {
  visitor.parameter("lora_A.weight", a_, Layout::linear);
  visitor.parameter("lora_B.weight", b_);
}

std::string Lora::describe() const {
  return "Lora(" + std::to_string(a_.shape()[1]) + ", " + std::to_string(b_.shape()[0]) +
         ", rank=" + std::to_string(options_.rank) + ")";
}

void Lora::set_merged(const Array& weight, bool merged) {
  if (merged == is_merged_) return;
  const Array change = matmul(b_, a_) * (merged ? scale_ : -scale_);
  assign(weight, astype(astype(weight, change.dtype()) + change, weight.dtype()));
  is_merged_ = merged;
}

Array adapted_linear(const Array& x, const Parameter& weight, const Array& bias, const std::shared_ptr<Lora>& adapter) {
  const Array y = weight.quantized() ? quantized_linear(x, weight, bias) : linear(x, weight, bias);
  return adapter && !adapter->is_merged() ? y + (*adapter)(x) : y;
}

LoraReport apply_lora(Module& model, const LoraOptions& options) {
  if (is_quantized(model)) throw ArgumentError("apply_lora: " + model.describe() + " is quantized; dequantize() first");
  if (has_lora(model))
    throw ArgumentError("apply_lora: " + model.describe() + " has adapters already; unload_lora() first");
  // Resolve all names first, so that a wrong name changes nothing.
  struct Layer {
    std::string name;
    Array weight;
    Adapter* adapter;
  };
  std::vector<Layer> layers;
  std::vector<std::string> names, modules;
  std::vector<Module*> saved;
  std::vector<std::string> saved_names;
  Choice to_save(options.modules_to_save, "apply_lora", "modules_to_save");
  visit_projections(
      model,
      [&](const std::string& name, const Array& weight, Adapter& adapter) {
        names.push_back(name);
        layers.push_back({name, weight, &adapter});
      },
      [&](const std::string& name, Module& module) {
        modules.push_back(name);
        if (name.empty() || !to_save.takes(name)) return;
        saved.push_back(&module);
        saved_names.push_back(name);
      });
  if (layers.empty()) throw ArgumentError("apply_lora: " + model.describe() + " has no linear layer");
  to_save.require_all_used("module", modules);
  std::vector<std::string> targets = options.targets;
  if (targets.empty()) {
    for (const std::string& name : names)
      if (is_attention(name)) targets.push_back(name);
    if (targets.empty()) targets = {kAllLinear};
  }
  Choice target(targets, "apply_lora", "targets");
  const auto is_saved = [&](const std::string& name) {
    return std::any_of(saved_names.begin(), saved_names.end(), [&](const std::string& one) {
      return name == one || name.compare(0, one.size() + 1, one + ".") == 0;
    });
  };
  std::vector<std::pair<const Layer*, std::shared_ptr<Lora>>> made;
  std::unordered_map<const void*, std::shared_ptr<Lora>> of_weight;
  for (const Layer& layer : layers) {
    if (!target.takes(layer.name) || is_saved(layer.name)) continue;
    std::shared_ptr<Lora>& adapter = of_weight[layer.weight.node().get()];
    if (!adapter) adapter = std::make_shared<Lora>(layer.weight, options);
    made.emplace_back(&layer, adapter);
  }
  target.require_all_used("linear layer", names);

  model.freeze();
  for (Module* module : saved) module->freeze(false);
  LoraReport report;
  for (const auto& [layer, adapter] : made) {
    adapter->train(model.is_training());
    *layer->adapter = adapter;
    report.layers.push_back(layer->name);
  }
  report.trainable = model.trainable_parameter_count();
  report.all = model.parameter_count();
  return report;
}

std::string LoraReport::to_text() const {
  const double share = all > 0 ? 100.0 * static_cast<double>(trainable) / static_cast<double>(all) : 0.0;
  std::string percent = std::to_string(share);
  percent.erase(percent.find('.') + 3);
  return grouped(trainable) + " of " + grouped(all) + " parameters are trained (" + percent + " %), in " +
         std::to_string(layers.size()) + (layers.size() == 1 ? " layer" : " layers");
}

void merge_lora(Module& model) {
  each_adapter("merge_lora", model, [](Lora& adapter, const Array& weight) { adapter.merge(weight); });
}

void unmerge_lora(Module& model) {
  each_adapter("unmerge_lora", model, [](Lora& adapter, const Array& weight) { adapter.unmerge(weight); });
}

void unload_lora(Module& model) {
  each_adapter("unload_lora", model, [](Lora&, const Array&) {});
  visit_projections(model, [](const std::string&, const Array&, Adapter& adapter) { adapter.reset(); });
  model.freeze(false);
}

bool has_lora(Module& model) {
  bool found = false;
  visit_projections(model, [&](const std::string&, const Array&, Adapter& adapter) { found = found || adapter; });
  return found;
}

const LoraOptions& lora_options(Module& model) {
  const LoraOptions* options = nullptr;
  each_adapter("lora_options", model, [&](Lora& adapter, const Array&) { options = &adapter.options(); });
  return *options;
}

std::vector<NamedArray> lora_state(const Module& model) {
  std::vector<NamedArray> state = model.state();
  if (std::none_of(state.begin(), state.end(), [](const NamedArray& entry) { return entry.is_adapter; }))
    throw ArgumentError("lora_state: " + model.describe() + " has no adapters; apply_lora() first");
  std::erase_if(state,
                [](const NamedArray& entry) { return !entry.is_adapter && !entry.is_buffer && entry.is_frozen; });
  return state;
}

}  // namespace samebytes::nn
