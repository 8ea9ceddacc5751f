// Convolutions with the norms that follow them.
#include <set>

#include "onnx/links.h"
#include "onnx/rewrite.h"

namespace samebytes::onnx {

int fuse_norms(::onnx::GraphProto& graph) {
  const Links links(graph);
  std::map<int, int> conv_of;  // norms
  std::set<int> gone;
  for (int i = 0; i < graph.node_size(); ++i) {
    if (!links.is(i, "BatchNormalization", 5) || graph.node(i).output_size() != 1) continue;
    const auto above = links.only(graph.node(i).input(0));
    if (!above || (!links.is(*above, "Conv", 2) && !links.is(*above, "Conv", 3))) continue;
    conv_of[i] = *above;
    gone.insert(*above);
  }
  google::protobuf::RepeatedPtrField<::onnx::NodeProto> kept;
  for (int i = 0; i < graph.node_size(); ++i) {
    if (gone.contains(i)) continue;
    auto& made = *kept.Add();
    made = graph.node(i);
    const auto at = conv_of.find(i);
    if (at == conv_of.end()) continue;
    const ::onnx::NodeProto& conv = graph.node(at->second);
    made.set_op_type("ConvBatchNormalization");
    made.set_domain("samebytes");
    made.set_name(conv.name());
    made.clear_input();
    for (const auto& input : conv.input()) made.add_input(input);
    for (int k = 1; k < 5; ++k) made.add_input(graph.node(i).input(k));
    for (const auto& attribute : conv.attribute()) *made.add_attribute() = attribute;
  }
  graph.mutable_node()->Swap(&kept);
  return static_cast<int>(conv_of.size());
}

}  // namespace samebytes::onnx
