#include "samebytes/nn/norm.h"

#include "nn/initial.h"
#include "samebytes/ops.h"

namespace samebytes::nn {
namespace {

void require_features(const char* layer, std::int64_t features, const Array& x) {
  if (x.shape().back() != features)
    throw ArgumentError(std::string(layer) + ": needs " + std::to_string(features) +
                        " features in the last axis, src is " + x.shape().to_string());
}

}  // namespace

BatchNorm::BatchNorm(const BatchNormOptions& options) : options_(options) {
  require_positive("BatchNorm", "features", options.features);
  require_real("BatchNorm", options.dtype);
  const Shape shape{options.features};
  weight_ = Parameter(cell(ones(shape, options.dtype), describe() + ".weight"));
  bias_ = Parameter(cell(zeros(shape, options.dtype), describe() + ".bias"));
  running_mean_ = Parameter(cell(zeros(shape, options.dtype), describe() + ".running_mean"));
  running_var_ = Parameter(cell(ones(shape, options.dtype), describe() + ".running_var"));
}

Array BatchNorm::forward(const Array& x) {
  refuse_channels_first(describe(), options_.features, x);
  const samebytes::BatchNormOptions options{.eps = options_.eps, .momentum = options_.momentum};
  return is_training() ? batch_norm_train(x, weight_, bias_, running_mean_, running_var_, options)
                       : batch_norm_eval(x, weight_, bias_, running_mean_, running_var_, options);
}

void BatchNorm::visit(Visitor& visitor) {
  visitor.parameter("weight", weight_);
  visitor.parameter("bias", bias_);
  visitor.buffer("running_mean", running_mean_);
  visitor.buffer("running_var", running_var_);
}

std::string BatchNorm::describe() const { return "BatchNorm(" + std::to_string(options_.features) + ")"; }

LayerNorm::LayerNorm(const LayerNormOptions& options) : options_(options) {
  require_positive("LayerNorm", "features", options.features);
  require_real("LayerNorm", options.dtype);
  if (!options.affine) return;
  weight_ = Parameter(cell(ones({options.features}, options.dtype), describe() + ".weight"));
  bias_ = Parameter(cell(zeros({options.features}, options.dtype), describe() + ".bias"));
}

Array LayerNorm::forward(const Array& x) {
  require_features("LayerNorm", options_.features, x);
  return layer_norm(x, weight_, bias_, options_.eps);
}

void LayerNorm::visit(Visitor& visitor) {
  if (!weight_.defined()) return;
  visitor.parameter("weight", weight_);
  visitor.parameter("bias", bias_);
}

std::string LayerNorm::describe() const { return "LayerNorm(" + std::to_string(options_.features) + ")"; }

RmsNorm::RmsNorm(const RmsNormOptions& options) : options_(options) {
  require_positive("RmsNorm", "features", options.features);
  require_real("RmsNorm", options.dtype);
  if (options.affine) weight_ = Parameter(cell(ones({options.features}, options.dtype), describe() + ".weight"));
}

Array RmsNorm::forward(const Array& x) {
  require_features("RmsNorm", options_.features, x);
  return rms_norm(x, weight_, options_.eps);
}

void RmsNorm::visit(Visitor& visitor) {
  if (weight_.defined()) visitor.parameter("weight", weight_);
}

std::string RmsNorm::describe() const { return "RmsNorm(" + std::to_string(options_.features) + ")"; }

GroupNorm::GroupNorm(const GroupNormOptions& options) : options_(options) {
  require_positive("GroupNorm", "groups", options.groups);
  require_positive("GroupNorm", "features", options.features);
  require_real("GroupNorm", options.dtype);
  if (options.features % options.groups != 0)
    throw ArgumentError("GroupNorm: groups must divide the features, got " + std::to_string(options.groups) + " and " +
                        std::to_string(options.features));
  if (!options.affine) return;
  weight_ = Parameter(cell(ones({options.features}, options.dtype), describe() + ".weight"));
  bias_ = Parameter(cell(zeros({options.features}, options.dtype), describe() + ".bias"));
}

Array GroupNorm::forward(const Array& x) {
  refuse_channels_first(describe(), options_.features, x);
  require_features("GroupNorm", options_.features, x);
  return group_norm(x, options_.groups, weight_, bias_, options_.eps);
}

void GroupNorm::visit(Visitor& visitor) {
  if (!weight_.defined()) return;
  visitor.parameter("weight", weight_);
  visitor.parameter("bias", bias_);
}

std::string GroupNorm::describe() const {
  return "GroupNorm(" + std::to_string(options_.groups) + ", " + std::to_string(options_.features) + ")";
}

InstanceNorm::InstanceNorm(const InstanceNormOptions& options) : options_(options) {
  require_positive("InstanceNorm", "features", options.features);
  require_real("InstanceNorm", options.dtype);
  const Shape shape{options.features};
  if (options.affine) {
    weight_ = Parameter(cell(ones(shape, options.dtype), describe() + ".weight"));
    bias_ = Parameter(cell(zeros(shape, options.dtype), describe() + ".bias"));
  }
  if (options.track_running_stats) {
    running_mean_ = Parameter(cell(zeros(shape, options.dtype), describe() + ".running_mean"));
    running_var_ = Parameter(cell(ones(shape, options.dtype), describe() + ".running_var"));
  }
}

Array InstanceNorm::forward(const Array& x) {
  refuse_channels_first(describe(), options_.features, x);
  require_features("InstanceNorm", options_.features, x);
  const samebytes::InstanceNormOptions options{.eps = options_.eps, .momentum = options_.momentum};
  if (is_training() || !running_mean_.defined())
    return instance_norm(x, weight_, bias_, running_mean_, running_var_, options);
  const Shape shape{options_.features};
  return batch_norm_eval(x, weight_.defined() ? weight_ : ones(shape, options_.dtype),
                         bias_.defined() ? bias_ : zeros(shape, options_.dtype), running_mean_, running_var_,
                         {.eps = options_.eps});
}

void InstanceNorm::visit(Visitor& visitor) {
  if (weight_.defined()) {
    visitor.parameter("weight", weight_);
    visitor.parameter("bias", bias_);
  }
  if (running_mean_.defined()) {
    visitor.buffer("running_mean", running_mean_);
    visitor.buffer("running_var", running_var_);
  }
}

std::string InstanceNorm::describe() const { return "InstanceNorm(" + std::to_string(options_.features) + ")"; }

}  // namespace samebytes::nn
