#include "onnx/check.h"

#include <set>
#include <vector>

#include "onnx/registry.h"
#include "samebytes/error.h"

namespace samebytes::onnx {
namespace {

constexpr int kDeepest = 32;  // functions and subgraphs inside each other

const std::set<std::string>& control() {
  static const std::set<std::string> ops{"If", "Loop", "Scan", "Constant"};
  return ops;
}

// Checks a graph before anything runs: every value is made before it is read and once, every operator is known.
class Checker {
 public:
  explicit Checker(const Functions& functions) : functions_(functions) {}

  void graph(const ::onnx::GraphProto& graph, std::set<std::string> known, int depth) {
    for (const auto& input : graph.input()) known.insert(input.name());
    for (const auto& tensor : graph.initializer()) known.insert(tensor.name());
    nodes(graph.node(), known, depth);
    for (const auto& output : graph.output())
      if (!known.contains(output.name()))
        throw ArgumentError("onnx: the output '" + output.name() + "' is made by no node");
  }
  void finish() const {
    if (unknown_.empty()) return;
    std::string text = "onnx: " + std::to_string(unknown_.size()) + " nodes have operators that are not supported:";
    for (const std::string& node : unknown_) text += "\n  " + node;
    throw ArgumentError(text + "\nExport the model without them; docs/onnx.md lists what is supported.");
  }

 private:
  void nodes(const google::protobuf::RepeatedPtrField<::onnx::NodeProto>& list, std::set<std::string>& known,
             int depth) {
    if (depth > kDeepest)
      throw ArgumentError("onnx: functions or subgraphs are nested deeper than " + std::to_string(kDeepest));
    for (const auto& node : list) {
      for (const auto& input : node.input())
        if (!input.empty() && !known.contains(input))
          throw ArgumentError("onnx: " + shown(node) + " reads '" + input +
                              "', which no input, initializer or earlier node gives; a graph must have no cycle");
      for (const auto& attribute : node.attribute())
        if (attribute.has_g()) graph(attribute.g(), known, depth + 1);
      const auto function = functions_.find(key_of(node.domain(), node.op_type()));
      if (function != functions_.end()) {
        std::set<std::string> inside(function->second->input().begin(), function->second->input().end());
        nodes(function->second->node(), inside, depth + 1);
      } else if (const std::string name = registered_as(node.domain(), node.op_type());
                 !registry().contains(name) && !control().contains(name)) {
        unknown_.push_back(shown(node));
      }
      for (const auto& output : node.output())
        if (!output.empty() && !known.insert(output).second)
          throw ArgumentError("onnx: " + shown(node) + " makes '" + output + "', which exists already");
    }
  }

  const Functions& functions_;
  std::vector<std::string> unknown_;
};

}  // namespace

bool is_standard(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

std::string shown(const ::onnx::NodeProto& node) {
  std::string where = node.name();
  if (where.empty() && node.output_size() > 0) where = node.output(0);
  std::string text;
  for (const char c : where.substr(0, 120)) text += static_cast<unsigned char>(c) < 32 ? '?' : c;
  return (is_standard(node.domain()) ? "" : node.domain() + ".") + node.op_type() + " '" + text + "'";
}

std::string registered_as(const std::string& domain, const std::string& op) {
  return is_standard(domain) ? op : domain + "." + op;
}

std::string key_of(const std::string& domain, const std::string& op) { return domain + ":" + op; }

void check(const ::onnx::GraphProto& graph, const Functions& functions) {
  Checker checker(functions);
  checker.graph(graph, {}, 0);
  checker.finish();
}

}  // namespace samebytes::onnx
