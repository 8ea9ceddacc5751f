// Written: an op that can be written as nodes of ONNX. Such an op derives from it beside Op and says how in its own
// file; onnx/save.cpp walks the graph and asks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "graph/node.h"

namespace samebytes::detail {

struct WrittenAttribute {
  std::string key;
  std::variant<std::int64_t, double, std::vector<std::int64_t>, std::string> value;
};

struct WrittenProduct {
  std::string x, weight, bias;
};

// One node while it is written. Values have names; each operator of ONNX that is put gives a new one.
class NodeWriter {
 public:
  using Name = std::string;
  using Ints = std::vector<std::int64_t>;
  using Attributes = std::vector<WrittenAttribute>;

  explicit NodeWriter(const Node& node) : node_(node) {}
  NodeWriter(const NodeWriter&) = delete;
  NodeWriter& operator=(const NodeWriter&) = delete;
  virtual ~NodeWriter() = default;

  std::size_t count() const { return node_.tape_inputs().size(); }
  const Shape& shape(std::size_t i) const { return node_.tape_inputs()[i].node->shape; }  // of an input
  Dtype dtype(std::size_t i) const { return node_.tape_inputs()[i].node->dtype; }
  const Shape& result() const { return node_.results.empty() ? node_.shape : node_.results[0].first; }
  Dtype result_dtype() const { return node_.results.empty() ? node_.dtype : node_.results[0].second; }
  std::size_t results() const { return node_.results.size(); }
  const Scalar& scalar(std::size_t i) const { return node_.tape_scalars()[i]; }
  Array array(std::size_t i) const { return Array(node_.tape_inputs()[i].node); }  // an input, for its values

  virtual Name in(std::size_t i) = 0;
  // The inputs of a pointwise node, stored all in one order that its result then has, too, and as narrow as they were
  // before they were broadcast: turned(result, order) is what the graph means. Empty: as it means.
  virtual std::vector<Name> operands(Ints& order) = 0;
  // One operator of ONNX's own domain; its first output. An empty input is left out.
  virtual Name put(const std::string& type, const std::vector<Name>& inputs, const Attributes& attributes = {}) = 0;
  // The same with this many outputs.
  virtual std::vector<Name> put_all(const std::string& type, const std::vector<Name>& inputs,
                                    const Attributes& attributes, std::size_t outputs) = 0;
  // The x W' + b that gives `value`, perhaps reshaped since; bias is empty where there is none.
  virtual std::optional<WrittenProduct> product(const Name& value) const = 0;
  // The axes in another order: axis i of the result is axis order[i]. Two of them that undo each other vanish.
  virtual Name turned(const Name& value, const Ints& order) = 0;
  virtual Name reshaped(const Name& value, const Shape& shape) = 0;
  virtual Name expanded(const Name& value, const Shape& shape) = 0;
  virtual Name cast(const Name& value, Dtype from, Dtype to) = 0;
  virtual Name ints(const Ints& values) = 0;  // one axis
  virtual Name numbers(const std::vector<double>& values, const Shape& shape, Dtype dtype) = 0;
  virtual Name bytes(const std::vector<std::int8_t>& values, const Shape& shape) = 0;
  Name number(double value, Dtype dtype) { return numbers({value}, Shape{}, dtype); }
  virtual void give(const Name& value, int result = 0) = 0;  // names a result of the node
  [[noreturn]] virtual void refuse(const std::string& why) const = 0;

 private:
  const Node& node_;
};

class Written {
 public:
  virtual ~Written() = default;
  virtual void write(NodeWriter& writer) const = 0;
};

}  // namespace samebytes::detail
