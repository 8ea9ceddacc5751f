// oneDNN's products and convolutions. A product takes its operands as they lie, as a BLAS does: packing is a part of
// its time, as it is of ours. A convolution takes and gives the layouts that oneDNN likes best (format any), so
// reorders are never timed.
#include "native/onednn.h"

#include "native/peer.h"

#ifdef SAMEBYTES_HAS_ONEDNN
#include <cstring>

namespace samebytes::benchmarks {
namespace onednn {

dnnl::engine& cpu() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& stream() {
  static dnnl::stream stream(cpu());
  return stream;
}

memory::desc plain(const memory::dims& dims, memory::format_tag tag) { return {dims, memory::data_type::f32, tag}; }
memory::desc any(const memory::dims& dims) { return plain(dims, memory::format_tag::any); }
memory uninitialised(const memory::desc& desc) { return {desc, cpu()}; }

memory placed(const std::vector<float>& values, const memory::desc& ours, const memory::desc& wanted) {
  memory copy(ours, cpu());
  std::memcpy(copy.get_data_handle(), values.data(), values.size() * sizeof(float));
  if (ours == wanted) return copy;
  memory other(wanted, cpu());
  dnnl::reorder(copy, other).execute(stream(), copy, other);
  stream().wait();
  return other;
}

void run(const dnnl::primitive& primitive, const Arguments& arguments) {
  primitive.execute(stream(), arguments);
  stream().wait();
}

Peer peer(dnnl::primitive primitive, Arguments arguments, int dst, const memory::desc& ours) {
  const auto kept = std::make_shared<Arguments>(std::move(arguments));
  return {"onednn", [=] { run(primitive, *kept); },
          [=] {
            memory from = kept->at(dst), plainly(ours, cpu());
            dnnl::reorder(from, plainly).execute(stream(), from, plainly);
            stream().wait();
            std::vector<float> values(ours.get_size() / sizeof(float));
            std::memcpy(values.data(), plainly.get_data_handle(), ours.get_size());
            return values;
          }};
}

}  // namespace onednn

using onednn::any, onednn::placed, onednn::plain, onednn::uninitialised;
using Tag = dnnl::memory::format_tag;

Peer onednn_matmul(const Product& p, std::vector<float> a, std::vector<float> b) {
  const auto a_desc = plain({p.m, p.k}, p.transposed_a ? Tag::ba : Tag::ab);
  const auto b_desc = plain({p.k, p.n}, p.transposed_b ? Tag::ba : Tag::ab), c_desc = plain({p.m, p.n}, Tag::ab);
  const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(a_desc, b_desc, c_desc), onednn::cpu());
  return onednn::peer(dnnl::matmul(chosen),
                      {{DNNL_ARG_SRC, placed(a, a_desc, a_desc)},
                       {DNNL_ARG_WEIGHTS, placed(b, b_desc, b_desc)},
                       {DNNL_ARG_DST, uninitialised(c_desc)}},
                      DNNL_ARG_DST, c_desc);
}

Peer onednn_convolution(const Convolution& c, Pass pass, std::vector<float> first, std::vector<float> second) {
  using namespace dnnl;
  const bool flat = c.one_axis;
  const memory::dims src =
      flat ? memory::dims{c.images, c.in, c.width} : memory::dims{c.images, c.in, c.height, c.width};
  const memory::dims weight =
      flat ? memory::dims{c.out, c.in, c.kernel_w} : memory::dims{c.out, c.in, c.kernel_h, c.kernel_w};
  const memory::dims dst =
      flat ? memory::dims{c.images, c.out, c.out_w()} : memory::dims{c.images, c.out, c.out_h(), c.out_w()};
  const memory::dims strides = flat ? memory::dims{c.stride} : memory::dims{c.stride, c.stride};
  const memory::dims pads = flat ? memory::dims{c.pad} : memory::dims{c.pad, c.pad};
  const auto images = flat ? Tag::nwc : Tag::nhwc, weights = flat ? Tag::wio : Tag::hwio;
  const auto our_src = plain(src, images), our_dst = plain(dst, images), our_weight = plain(weight, weights);
  const auto way = algorithm::convolution_direct;
  const convolution_forward::primitive_desc forward(
      convolution_forward::desc(prop_kind::forward_training, way, any(src), any(weight), any(dst), strides, pads, pads),
      onednn::cpu());
  switch (pass) {
    case Pass::forward:
      return onednn::peer(convolution_forward(forward),
                          {{DNNL_ARG_SRC, placed(first, our_src, forward.src_desc())},
                           {DNNL_ARG_WEIGHTS, placed(second, our_weight, forward.weights_desc())},
                           {DNNL_ARG_DST, uninitialised(forward.dst_desc())}},
                          DNNL_ARG_DST, our_dst);
    case Pass::input_gradient: {
      const convolution_backward_data::primitive_desc chosen(
          convolution_backward_data::desc(way, any(src), any(weight), any(dst), strides, pads, pads), onednn::cpu(),
          forward);
      return onednn::peer(convolution_backward_data(chosen),
                          {{DNNL_ARG_DIFF_DST, placed(first, our_dst, chosen.diff_dst_desc())},
                           {DNNL_ARG_WEIGHTS, placed(second, our_weight, chosen.weights_desc())},
                           {DNNL_ARG_DIFF_SRC, uninitialised(chosen.diff_src_desc())}},
                          DNNL_ARG_DIFF_SRC, our_src);
    }
    case Pass::weight_gradient: break;
  }
  const convolution_backward_weights::primitive_desc chosen(
      convolution_backward_weights::desc(way, any(src), any(weight), any(dst), strides, pads, pads), onednn::cpu(),
      forward);
  return onednn::peer(convolution_backward_weights(chosen),
                      {{DNNL_ARG_SRC, placed(first, our_src, chosen.src_desc())},
                       {DNNL_ARG_DIFF_DST, placed(second, our_dst, chosen.diff_dst_desc())},
                       {DNNL_ARG_DIFF_WEIGHTS, uninitialised(chosen.diff_weights_desc())}},
                      DNNL_ARG_DIFF_WEIGHTS, our_weight);
}

}  // namespace samebytes::benchmarks
#else
namespace samebytes::benchmarks {
Peer onednn_matmul(const Product&, std::vector<float>, std::vector<float>) { return {}; }
Peer onednn_convolution(const Convolution&, Pass, std::vector<float>, std::vector<float>) { return {}; }
}  // namespace samebytes::benchmarks
#endif
