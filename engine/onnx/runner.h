// Runs the nodes of a graph in the file's order: subgraphs with the values around them, function bodies in place.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "onnx/check.h"
#include "onnx/registry.h"

namespace samebytes::onnx {

// Of ONNX's own operators; the newest one where a file has none of them.
int opset_of(const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& imports);

// The values of one graph, above those of the graph around it.
struct Scope {
  std::map<std::string, Item> values;
  const Scope* outer = nullptr;
  const std::map<std::string, Item>* fixed = nullptr;  // more values, which all runs share
  const Attributes* given = nullptr;                   // of the function that the graph is the body of

  // An undefined item for an empty name; throws ArgumentError for a name that nothing has.
  const Item& at(const std::string& name) const;
};

class Runner {
 public:
  static constexpr std::size_t kAnyBytes = std::numeric_limits<std::size_t>::max();
  // most_bytes: what all nodes together may give.
  Runner(const Functions& functions, bool training, std::size_t most_bytes = kAnyBytes)
      : functions_(functions), training_(training), bytes_left_(most_bytes) {}

  // Adds what the nodes give to the scope. Throws ArgumentError with the name of the node.
  void nodes(const google::protobuf::RepeatedPtrField<::onnx::NodeProto>& list, Scope& scope, int opset);
  void node(const ::onnx::NodeProto& node, Scope& scope, int opset);

 private:
  Call call_of(const ::onnx::NodeProto& node, const Scope& scope, int opset) const;
  Outputs outputs_of(const ::onnx::NodeProto& node, const Call& call, Scope& scope);
  Outputs function(const ::onnx::FunctionProto& body, const Call& call);
  Outputs subgraph(const ::onnx::GraphProto& graph, const Outputs& inputs, const Scope& outer, const Call& call);
  Outputs branch(const Call& call, const Scope& scope);
  Outputs loop(const Call& call, const Scope& scope);
  Outputs scan(const Call& call, const Scope& scope);
  Outputs flex_attention(const Call& call, const Scope& scope);
  Outputs scanned(const Call& call, const Scope& scope, const Outputs& in);

  void count_step(const Call& call);

  const Functions& functions_;
  bool training_;
  std::size_t bytes_left_;
  std::int64_t steps_ = 0;  // of all loops
  int depth_ = 0;           // of functions and subgraphs
};

}  // namespace samebytes::onnx
