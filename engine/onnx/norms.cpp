// Normalisation.
#include <numeric>

#include "onnx/registry.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

// By the batch's own statistics, as a file asks for that has no others; x [N, ..., C]. The running ones are outputs.
Outputs batch_statistics(const Call& call, const Array& x, const Order& order) {
  std::vector<int> axes(static_cast<std::size_t>(x.shape().rank() - 1));
  std::iota(axes.begin(), axes.end(), 0);
  const double eps = call.real("epsilon", double(1e-5F)), momentum = call.real("momentum", double(0.9F));
  const Array mean = samebytes::mean(x, axes), variance = var(x, axes, false, 0.0);
  const Array y = (x - mean) * (call.array(1) * rsqrt(variance + eps)) + call.array(2);
  const auto running = [&](std::size_t i, const Array& own) {
    return item_of(call.array(i) * momentum + astype(own, call.array(i).dtype()) * (1.0 - momentum));
  };
  return {ordered(y, order), running(3, mean), running(4, variance)};
}

// Takes the images, so that they can fold with what they come from if nobody else holds them.
Outputs normalised(const Call& call, Item images) {
  const std::size_t rank = sizes_of(images).size();
  if (!is_floating(images.type) || rank < 2) call.refuse("expected floating [N, C, ...]");
  const Order order = rank > 2 ? channels_last(rank) : Order{};
  const Array x = stored(images, order), scale = call.array(1), shift = call.array(2);
  images = {};
  const Array mean = call.floating(3), variance = call.floating(4);
  const auto eps = static_cast<float>(call.real("epsilon", double(1e-5f)));
  const auto momentum = static_cast<float>(1.0 - call.real("momentum", double(0.9f)));
  const bool is_asked = call.integer("training_mode", 0) != 0;
  if (is_asked && (!call.training || call.outputs > 1)) return batch_statistics(call, x, order);
  if (call.training && is_cell(mean) && is_cell(variance))
    return {ordered(batch_norm_train(x, scale, shift, mean, variance, {eps, momentum}), order)};
  return {ordered(batch_norm_eval(x, scale, shift, mean, variance, {eps, momentum}), order)};
}

Outputs batch(const Call& call) { return normalised(call, call.at(0)); }

// The inputs of a Conv, then those of the norm after it.
Outputs convolved_batch(const Call& call) {
  if (call.in.size() < 6) call.refuse("expected the inputs of a Conv and of its norm");
  const auto own = std::ssize(call.in) - 4;
  Call conv = call, norm = call;
  conv.in.resize(static_cast<std::size_t>(own));
  norm.in.erase(norm.in.begin(), norm.in.begin() + own);
  norm.in.insert(norm.in.begin(), Item{});
  Outputs made = registry().at("Conv")(conv);
  Item images = std::move(made.at(0));
  return normalised(norm, std::move(images));
}

Outputs instance(const Call& call) {
  if (!call.is_floating() || call.rank() < 3) call.refuse("expected floating [N, C, ...]");
  const Order order = channels_last(static_cast<std::size_t>(call.rank()));
  InstanceNormOptions options;
  options.eps = static_cast<float>(call.real("epsilon", double(1e-5f)));
  const Array x = stored(call.at(0), order);
  std::int64_t values = 1;
  for (int i = 1; i + 1 < x.shape().rank(); ++i) values *= x.shape()[i];
  // One value is its own mean: only the bias stays. The op refuses that, as PyTorch's does.
  if (values == 1) return {ordered((x - x) * call.array(1) + call.array(2), order)};
  return {ordered(instance_norm(x, call.array(1), call.array(2), {}, {}, options), order)};
}

Outputs group(const Call& call) {
  if (!call.is_floating() || call.rank() < 3) call.refuse("expected floating [N, C, ...]");
  if (call.opset < 21) call.refuse("scales for each group are not supported (opsets below 21)");
  const Order order = channels_last(static_cast<std::size_t>(call.rank()));
  const auto eps = static_cast<float>(call.real("epsilon", double(1e-5f)));
  return {ordered(
      group_norm(stored(call.at(0), order), call.integer("num_groups", 1), call.array(1), call.array(2), eps), order)};
}

// Over the axes from `axis` on, as one axis.
Outputs rows(const Call& call) {
  const Array x = call.floating();
  const int axis = call.axis(call.integer("axis", -1), call.rank());
  const auto eps = static_cast<float>(call.real("epsilon", double(1e-5f)));
  std::int64_t inner = 1;
  for (int i = axis; i < call.rank(); ++i) inner *= x.shape()[i];
  const auto flat = [&](std::size_t i) {
    const Array a = call.optional(i);
    if (a.defined() && a.size() != inner) call.refuse("its scale has " + std::to_string(a.size()) + " values");
    return a.defined() ? reshape(a, {inner}) : a;
  };
  if (inner == 0) call.refuse("an empty tensor is not supported");
  const Array in = reshape(x, {x.size() / inner, inner});
  const Array y = call.op == "RMSNormalization" ? rms_norm(in, flat(1), eps) : layer_norm(in, flat(1), flat(2), eps);
  Outputs result{item_of(reshape(y, x.shape()))};
  if (call.outputs > 1 && call.op == "LayerNormalization") {
    Shape kept = x.shape();
    for (int i = axis; i < kept.rank(); ++i) kept[i] = 1;
    const Array middle = mean(in, {1}, true);
    const Array variance = mean(square(in - middle), {1}, true);
    result.push_back(item_of(reshape(middle, kept)));
    result.push_back(item_of(reshape(rsqrt(variance + static_cast<double>(eps)), kept)));
  }
  return result;
}

// To mean 0 and variance 1 over some axes.
Outputs standardised(const Call& call) {
  const Array x = call.floating();
  std::vector<int> axes;
  for (const std::int64_t axis : call.integers("axes", {0, 2, 3})) axes.push_back(call.axis(axis, call.rank()));
  const Array centred = x - mean(x, axes, true);
  return {item_of(centred / (sqrt(mean(square(centred), axes, true)) + 1e-9))};
}

Outputs unit(const Call& call) {
  const Array x = call.floating();
  const int axis = call.axis(call.integer("axis", -1), call.rank());
  const std::int64_t p = call.integer("p", 2);
  const Array total = sum(p == 1 ? abs(x) : square(x), {axis}, true);
  const Array some = where(equal(total, 0.0), full(Shape{}, 1.0, x.dtype()), total);  // zeros stay zeros
  return {item_of(x / (p == 1 ? some : sqrt(some)))};
}

Outputs local_response(const Call& call) {
  const Array x = call.floating();
  if (call.rank() < 3) call.refuse("expected [N, C, ...]");
  const std::int64_t size = call.integer("size", 1), channels = x.shape()[1];
  const double alpha = call.real("alpha", double(1e-4f)), beta = call.real("beta", 0.75), bias = call.real("bias", 1.0);
  constexpr std::int64_t kMostSize = 4096;  // a sum of its own for each
  if (size < 1 || size > channels + 1 || size > kMostSize) call.refuse("its size is outside");
  std::vector<PadWidth> widths(static_cast<std::size_t>(call.rank()));
  widths[1] = {(size - 1) / 2, size - 1 - (size - 1) / 2};
  const Array around = pad(square(x), widths);
  Array total = slice(around, 1, 0, channels);
  for (std::int64_t i = 1; i < size; ++i) total = total + slice(around, 1, i, i + channels);
  return {item_of(x / pow(total * (alpha / static_cast<double>(size)) + bias, beta))};
}

}  // namespace

void add_norms(Registry& registry) {
  registry.insert({{"BatchNormalization", batch}, {"InstanceNormalization", instance}, {"GroupNormalization", group}});
  registry.insert(
      {{"LayerNormalization", rows}, {"RMSNormalization", rows}, {"LpNormalization", unit}, {"LRN", local_response}});
  registry.insert({{"MeanVarianceNormalization", standardised}});
  registry.insert({{"samebytes.ConvBatchNormalization", convolved_batch}});
}

}  // namespace samebytes::onnx
