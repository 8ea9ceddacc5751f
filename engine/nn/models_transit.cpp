// The networks of models.h that distinguish transits of planets from other dips.
#include <optional>

#include "samebytes/engine.h"
#include "samebytes/error.h"
#include "samebytes/models.h"
#include "samebytes/ops.h"

namespace samebytes::models {
namespace {

constexpr int kBlocks = 3;
constexpr int kChannels[kBlocks] = {32, 32, 64};
constexpr int kGlobalKernels[kBlocks] = {7, 5, 5}, kLocalKernels[kBlocks] = {5, 3, 3};
constexpr int kHidden = 128;

nn::Sequential make_branch(const int (&kernels)[kBlocks]) {
  nn::Sequential branch;
  int in = 1;
  for (int b = 0; b < kBlocks; ++b) {
    const int out = kChannels[b];
    branch.add(nn::Conv1d({.in = in, .out = out, .kernel = kernels[b], .pad = kernels[b] / 2}));
    branch.add(nn::BatchNorm({.features = out}));
    branch.add(nn::Relu());
    branch.add(nn::MaxPool1d({.kernel = 2}));
    in = out;
  }
  branch.add(nn::GlobalAvgPool1d());
  return branch;
}

}  // namespace

Transit::Transit(const TransitOptions& options) : options_(options) {
  if (!options.has_global && !options.has_local) throw ArgumentError("Transit: needs at least one of its two branches");
  if (options.has_global) global_ = make_branch(kGlobalKernels);
  if (options.has_local) local_ = make_branch(kLocalKernels);
  const int features = kChannels[kBlocks - 1] * (options.has_global && options.has_local ? 2 : 1);
  head_.add(nn::LayerNorm({.features = features}));
  head_.add(nn::Linear({.in = features, .out = kHidden}));
  head_.add(nn::Relu());
  head_.add(nn::Dropout({.p = options.dropout}));
  head_.add(nn::Linear({.in = kHidden, .out = 1}));
}

Array Transit::forward(const Array& global, const Array& local) {
  return call([&] { return logits(global, local); });
}

Array Transit::forward_all(std::span<const Array> inputs) {
  return inputs.size() == 2 ? logits(inputs[0], inputs[1]) : Module::forward_all(inputs);
}

Array Transit::logits(const Array& global, const Array& local) {
  if (!options_.has_local) return head_(global_(global));
  if (!options_.has_global) return head_(on_local_device(local));
  const Array of_global = global_(global);
  return head_(concat({of_global, on_local_device(local)}, 1));
}

Array Transit::on_local_device(const Array& local) {
  std::optional<DeviceScope> elsewhere;
  if (options_.local_device) elsewhere.emplace(*options_.local_device);
  return local_(local);
}

Array Transit::forward(const Array& view) {
  if (options_.has_global && options_.has_local)
    throw ArgumentError("Transit: has two branches and got one view; call forward(global, local)");
  return logits(view, view);
}

void Transit::visit(nn::Visitor& visitor) {
  if (options_.has_global) visitor.child("global", global_);
  if (options_.has_local) visitor.child("local", local_);
  visitor.child("head", head_);
}

Transit transit(const TransitOptions& options) { return Transit(options); }

}  // namespace samebytes::models
