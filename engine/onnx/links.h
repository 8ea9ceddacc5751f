// Who gives and who reads the values of a graph, for what rewrites it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "onnx/check.h"
#include "onnx/proto.h"

namespace samebytes::onnx {

// What gives each value of a graph and how often it is read.
class Links {
 public:
  explicit Links(const ::onnx::GraphProto& graph) : graph_(graph) {
    for (int i = 0; i < graph.node_size(); ++i) {
      for (const auto& output : graph.node(i).output())
        if (!output.empty()) maker_[output] = i;
      read(graph.node(i), i);
    }
    for (const auto& output : graph.output()) ++readers_[output.name()];
  }
  // The node that gives `value`.
  std::optional<int> maker(const std::string& value) const {
    const auto at = maker_.find(value);
    return at == maker_.end() ? std::optional<int>() : at->second;
  }
  bool is_read(const std::string& value) const { return readers_.contains(value); }
  // The node that gives `value`, if it has this one result and nothing else reads it.
  std::optional<int> only(const std::string& value) const {
    const auto at = maker_.find(value);
    const auto readers = readers_.find(value);
    if (at == maker_.end() || readers == readers_.end() || readers->second != 1 ||
        graph_.node(at->second).output_size() != 1)
      return {};
    return at->second;
  }
  std::optional<int> reader(const std::string& value) const {
    const auto at = last_reader_.find(value);
    return at == last_reader_.end() || readers_.at(value) != 1 ? std::optional<int>() : at->second;
  }
  // The node that puts 0 (its second input) where `value` is no number, as exporters write it behind a soft-max, if
  // nothing else reads the value: a Where, and the IsNaN that it asks.
  struct NanToZero {
    int is_nan = 0, where = 0;
  };
  std::optional<NanToZero> nan_to_zero(const std::string& value) const {
    const auto at = last_reader_.find(value);
    if (at == last_reader_.end() || readers_.at(value) != 2 || !is(at->second, "Where", 3)) return {};
    const ::onnx::NodeProto& where = graph_.node(at->second);
    const auto is_nan = only(where.input(0));
    if (!is_nan || !is(*is_nan, "IsNaN", 1) || graph_.node(*is_nan).input(0) != value || where.input(2) != value)
      return {};
    return NanToZero{*is_nan, at->second};
  }
  bool is(int i, const std::string& op, int inputs) const {
    const ::onnx::NodeProto& node = graph_.node(i);
    return is_standard(node.domain()) && node.op_type() == op && node.input_size() == inputs;
  }

 private:
  void read(const ::onnx::NodeProto& node, int place) {
    for (const auto& input : node.input()) {
      if (input.empty()) continue;
      ++readers_[input];
      last_reader_[input] = place;
    }
    for (const auto& attribute : node.attribute())
      if (attribute.has_g())
        for (const auto& inner : attribute.g().node()) read(inner, place);
    for (const auto& attribute : node.attribute())
      if (attribute.has_g())
        for (const auto& output : attribute.g().output()) ++readers_[output.name()];
  }

  const ::onnx::GraphProto& graph_;
  std::map<std::string, int> maker_, last_reader_, readers_;
};

// Null where the node has none of this name.
inline const ::onnx::AttributeProto* attribute_of(const ::onnx::NodeProto& node, const std::string& name) {
  for (const auto& attribute : node.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

inline void leave_out(::onnx::GraphProto& graph, const std::set<int>& gone) {
  google::protobuf::RepeatedPtrField<::onnx::NodeProto> kept;
  for (int i = 0; i < graph.node_size(); ++i)
    if (!gone.contains(i)) kept.Add()->Swap(graph.mutable_node(i));
  graph.mutable_node()->Swap(&kept);
}

// Leaves out the nodes that may go and whose one result nobody reads, and those that only they read.
inline void leave_out_unread(::onnx::GraphProto& graph, const std::function<bool(int)>& may_go) {
  std::map<std::string, int> readers;
  const auto count = [&](const auto& self, const ::onnx::GraphProto& part) -> void {
    for (const auto& node : part.node()) {
      for (const auto& input : node.input()) ++readers[input];
      for (const auto& attribute : node.attribute())
        if (attribute.has_g()) self(self, attribute.g());
    }
    for (const auto& output : part.output()) ++readers[output.name()];
  };
  count(count, graph);
  std::set<int> gone;
  for (int i = graph.node_size(); i-- > 0;) {
    const ::onnx::NodeProto& node = graph.node(i);
    if (node.output_size() != 1 || readers[node.output(0)] > 0 || !may_go(i)) continue;
    gone.insert(i);
    for (const auto& input : node.input()) --readers[input];
  }
  leave_out(graph, gone);
}

}  // namespace samebytes::onnx
