// Writer: a graph of nodes as a graph of ONNX. Each op says itself how it is written (graph/written.h); this puts the
// operators, lets transposes cancel, and leaves out what no output needs.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/written.h"
#include "onnx/item.h"
#include "onnx/proto.h"
#include "samebytes/nn/module.h"

namespace samebytes::onnx {

class Writer {
 public:
  using Name = detail::NodeWriter::Name;
  using Ints = detail::NodeWriter::Ints;

  explicit Writer(::onnx::GraphProto& graph) : graph_(graph) {}

  // An input of the model, or of its state, in the file's order of axes: as the array here, turned by `order`.
  void input(const Array& array, const Name& name, const Ints& order);
  void state(const nn::NamedArray& entry);
  // Keeps the names for outputs: no value inside gets one of them.
  void reserve(const std::vector<Name>& outputs);
  // Writes what the arrays are made of; throws ArgumentError with all ops that cannot be written.
  void nodes(const std::vector<Array>& outputs);
  void output(const Array& array, const Name& name, const Ints& order);
  void finish();  // leaves out what is not needed

 private:
  friend class OneNode;
  struct Made {      // how a value was made, where that may be undone
    Name from;       // the value before a transpose or an expansion
    Ints order;      // of the transpose; empty: an expansion
    Shape narrow{};  // the shape before the expansion
  };

  Name fresh(const std::string& stem);
  Name put(const std::string& type, const std::vector<Name>& inputs, const detail::NodeWriter::Attributes& attributes);
  std::vector<Name> put_all(const std::string& type, const std::vector<Name>& inputs,
                            const detail::NodeWriter::Attributes& attributes, std::size_t outputs);
  const ::onnx::NodeProto* maker(const Name& value) const;  // null: an input or an initializer
  Name constant(const Tensor& tensor);
  Name ints(const Ints& values);
  Name turned(const Name& value, const Ints& order);
  Name reshaped(const Name& value, const Shape& shape);
  const Name& name_of(const detail::Node& node);
  std::vector<detail::NodePtr> sorted(const std::vector<Array>& outputs);
  void leaf(const detail::NodePtr& node);

  ::onnx::GraphProto& graph_;
  std::map<const detail::Node*, Name> names_;
  std::map<const detail::Node*, nn::NamedArray> state_;
  std::map<std::pair<const detail::Node*, int>, Name> results_;  // of nodes with several
  std::set<const detail::Node*> varying_;                        // what depends on inputs or state
  std::map<Name, int> makers_;                                   // places of nodes
  std::map<Name, Made> made_;
  std::map<std::pair<Name, Ints>, Name> turned_;
  std::map<Ints, Name> ints_;
  std::set<Name> used_;
  std::map<std::string, int> counts_;
};

// The bytes of a tensor, and its type and sizes.
::onnx::TensorProto proto_of(const Tensor& tensor);

}  // namespace samebytes::onnx
