// oneDNN's bandwidth-bound primitives: soft-max, norms, pooling, addition, sums. Images are taken and given channels
// last, as ours are; on CPUs these primitives gain nothing from blocked channels.
#include "native/onednn.h"

#include "native/peer.h"

#ifdef SAMEBYTES_HAS_ONEDNN

namespace samebytes::benchmarks {

using dnnl::memory, dnnl::prop_kind;
using onednn::placed, onednn::plain, onednn::uninitialised;
using Tag = dnnl::memory::format_tag;

namespace {

constexpr float kEps = 1e-5F;

memory::desc rows_of(const std::vector<float>& x, int columns) {
  return plain({static_cast<memory::dim>(x.size()) / columns, columns}, Tag::ab);
}
memory::desc images_of(const Images& s) { return plain({s.images, s.channels, s.height, s.width}, Tag::nhwc); }
memory::desc halves_of(const Images& s) { return plain({s.images, s.channels, s.height / 2, s.width / 2}, Tag::nhwc); }

dnnl::pooling_forward::primitive_desc pooling(const Images& shape, dnnl::algorithm algorithm) {
  return {dnnl::pooling_forward::desc(prop_kind::forward_training, algorithm, images_of(shape), halves_of(shape),
                                      {2, 2}, {2, 2}, {0, 0}, {0, 0}),
          onednn::cpu()};
}

}  // namespace

Peer onednn_softmax(std::vector<float> x, int columns) {
  const auto desc = rows_of(x, columns);
  const dnnl::softmax_forward::primitive_desc chosen(dnnl::softmax_forward::desc(prop_kind::forward_training, desc, 1),
                                                     onednn::cpu());
  return onednn::peer(dnnl::softmax_forward(chosen),
                      {{DNNL_ARG_SRC, placed(x, desc, desc)}, {DNNL_ARG_DST, uninitialised(desc)}}, DNNL_ARG_DST, desc);
}

Peer onednn_softmax_gradient(std::vector<float> y, std::vector<float> dy, int columns) {
  const auto desc = rows_of(y, columns);
  const dnnl::softmax_forward::primitive_desc forward(dnnl::softmax_forward::desc(prop_kind::forward_training, desc, 1),
                                                      onednn::cpu());
  const dnnl::softmax_backward::primitive_desc chosen(dnnl::softmax_backward::desc(desc, desc, 1), onednn::cpu(),
                                                      forward);
  return onednn::peer(dnnl::softmax_backward(chosen),
                      {{DNNL_ARG_DST, placed(y, desc, desc)},
                       {DNNL_ARG_DIFF_DST, placed(dy, desc, desc)},
                       {DNNL_ARG_DIFF_SRC, uninitialised(desc)}},
                      DNNL_ARG_DIFF_SRC, desc);
}

namespace {

dnnl::layer_normalization_forward::primitive_desc layer_norm(const memory::desc& desc) {
  return {
      dnnl::layer_normalization_forward::desc(prop_kind::forward_training, desc, kEps, dnnl::normalization_flags::none),
      onednn::cpu()};
}

dnnl::batch_normalization_forward::primitive_desc batch_norm(const memory::desc& desc) {
  return {
      dnnl::batch_normalization_forward::desc(prop_kind::forward_training, desc, kEps, dnnl::normalization_flags::none),
      onednn::cpu()};
}

template <class Chosen>
onednn::Arguments norm_arguments(const Chosen& chosen, const std::vector<float>& x, const memory::desc& desc) {
  return {{DNNL_ARG_SRC, placed(x, desc, desc)},
          {DNNL_ARG_DST, uninitialised(desc)},
          {DNNL_ARG_MEAN, uninitialised(chosen.mean_desc())},
          {DNNL_ARG_VARIANCE, uninitialised(chosen.variance_desc())}};
}

// What the backward pass takes: the source, the statistics of a forward pass that runs here, and dy.
template <class Forward, class Chosen>
onednn::Arguments gradient_arguments(const Chosen& chosen, const std::vector<float>& x, const std::vector<float>& dy,
                                     const memory::desc& desc) {
  onednn::Arguments arguments = norm_arguments(chosen, x, desc);
  onednn::run(Forward(chosen), arguments);
  arguments.erase(DNNL_ARG_DST);
  arguments.emplace(DNNL_ARG_DIFF_DST, placed(dy, desc, desc));
  arguments.emplace(DNNL_ARG_DIFF_SRC, uninitialised(desc));
  return arguments;
}

}  // namespace

Peer onednn_layer_norm(std::vector<float> x, int columns) {
  const auto desc = rows_of(x, columns);
  const auto chosen = layer_norm(desc);
  return onednn::peer(dnnl::layer_normalization_forward(chosen), norm_arguments(chosen, x, desc), DNNL_ARG_DST, desc);
}

Peer onednn_layer_norm_gradient(std::vector<float> x, std::vector<float> dy, int columns) {
  using Backward = dnnl::layer_normalization_backward;
  const auto desc = rows_of(x, columns);
  const auto forward = layer_norm(desc);
  const Backward::primitive_desc chosen(
      Backward::desc(prop_kind::backward_data, desc, desc, kEps, dnnl::normalization_flags::none), onednn::cpu(),
      forward);
  return onednn::peer(Backward(chosen), gradient_arguments<dnnl::layer_normalization_forward>(forward, x, dy, desc),
                      DNNL_ARG_DIFF_SRC, desc);
}

Peer onednn_batch_norm(const Images& shape, std::vector<float> x) {
  const auto desc = images_of(shape);
  const auto chosen = batch_norm(desc);
  return onednn::peer(dnnl::batch_normalization_forward(chosen), norm_arguments(chosen, x, desc), DNNL_ARG_DST, desc);
}

Peer onednn_batch_norm_gradient(const Images& shape, std::vector<float> x, std::vector<float> dy) {
  using Backward = dnnl::batch_normalization_backward;
  const auto desc = images_of(shape);
  const auto forward = batch_norm(desc);
  const Backward::primitive_desc chosen(
      Backward::desc(prop_kind::backward_data, desc, desc, kEps, dnnl::normalization_flags::none), onednn::cpu(),
      forward);
  return onednn::peer(Backward(chosen), gradient_arguments<dnnl::batch_normalization_forward>(forward, x, dy, desc),
                      DNNL_ARG_DIFF_SRC, desc);
}

Peer onednn_max_pool(const Images& shape, std::vector<float> x) {
  const auto chosen = pooling(shape, dnnl::algorithm::pooling_max);
  const auto desc = images_of(shape), half = halves_of(shape);
  return onednn::peer(dnnl::pooling_forward(chosen),
                      {{DNNL_ARG_SRC, placed(x, desc, desc)},
                       {DNNL_ARG_DST, uninitialised(half)},
                       {DNNL_ARG_WORKSPACE, uninitialised(chosen.workspace_desc())}},
                      DNNL_ARG_DST, half);
}

Peer onednn_max_pool_gradient(const Images& shape, std::vector<float> x, std::vector<float> dy) {
  const auto forward = pooling(shape, dnnl::algorithm::pooling_max);
  const auto desc = images_of(shape), half = halves_of(shape);
  const memory workspace = uninitialised(forward.workspace_desc());
  onednn::run(
      dnnl::pooling_forward(forward),
      {{DNNL_ARG_SRC, placed(x, desc, desc)}, {DNNL_ARG_DST, uninitialised(half)}, {DNNL_ARG_WORKSPACE, workspace}});
  const dnnl::pooling_backward::primitive_desc chosen(
      dnnl::pooling_backward::desc(dnnl::algorithm::pooling_max, desc, half, {2, 2}, {2, 2}, {0, 0}, {0, 0}),
      onednn::cpu(), forward);
  return onednn::peer(dnnl::pooling_backward(chosen),
                      {{DNNL_ARG_DIFF_DST, placed(dy, half, half)},
                       {DNNL_ARG_DIFF_SRC, uninitialised(desc)},
                       {DNNL_ARG_WORKSPACE, workspace}},
                      DNNL_ARG_DIFF_SRC, desc);
}

Peer onednn_avg_pool(const Images& shape, std::vector<float> x) {
  const auto chosen = pooling(shape, dnnl::algorithm::pooling_avg_exclude_padding);
  const auto desc = images_of(shape), half = halves_of(shape);
  return onednn::peer(dnnl::pooling_forward(chosen),
                      {{DNNL_ARG_SRC, placed(x, desc, desc)}, {DNNL_ARG_DST, uninitialised(half)}}, DNNL_ARG_DST, half);
}

Peer onednn_add(std::vector<float> a, std::vector<float> b) {
  const auto desc = plain({static_cast<memory::dim>(a.size())}, Tag::a);
  const dnnl::binary::primitive_desc chosen(dnnl::binary::desc(dnnl::algorithm::binary_add, desc, desc, desc),
                                            onednn::cpu());
  return onednn::peer(dnnl::binary(chosen),
                      {{DNNL_ARG_SRC_0, placed(a, desc, desc)},
                       {DNNL_ARG_SRC_1, placed(b, desc, desc)},
                       {DNNL_ARG_DST, uninitialised(desc)}},
                      DNNL_ARG_DST, desc);
}

Peer onednn_sum_rows(std::vector<float> x, int columns) {
  const auto desc = rows_of(x, columns), sums = plain({static_cast<memory::dim>(x.size()) / columns, 1}, Tag::ab);
  const dnnl::reduction::primitive_desc chosen(
      dnnl::reduction::desc(dnnl::algorithm::reduction_sum, desc, sums, 0.0F, 0.0F), onednn::cpu());
  return onednn::peer(dnnl::reduction(chosen),
                      {{DNNL_ARG_SRC, placed(x, desc, desc)}, {DNNL_ARG_DST, uninitialised(sums)}}, DNNL_ARG_DST, sums);
}

}  // namespace samebytes::benchmarks
#else
namespace samebytes::benchmarks {
Peer onednn_softmax(std::vector<float>, int) { return {}; }
Peer onednn_softmax_gradient(std::vector<float>, std::vector<float>, int) { return {}; }
Peer onednn_layer_norm(std::vector<float>, int) { return {}; }
Peer onednn_layer_norm_gradient(std::vector<float>, std::vector<float>, int) { return {}; }
Peer onednn_batch_norm(const Images&, std::vector<float>) { return {}; }
Peer onednn_batch_norm_gradient(const Images&, std::vector<float>, std::vector<float>) { return {}; }
Peer onednn_max_pool(const Images&, std::vector<float>) { return {}; }
Peer onednn_max_pool_gradient(const Images&, std::vector<float>, std::vector<float>) { return {}; }
Peer onednn_avg_pool(const Images&, std::vector<float>) { return {}; }
Peer onednn_add(std::vector<float>, std::vector<float>) { return {}; }
Peer onednn_sum_rows(std::vector<float>, int) { return {}; }
}  // namespace samebytes::benchmarks
#endif
