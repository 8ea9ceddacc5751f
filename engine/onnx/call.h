// Call: one node at work. An operator of ONNX is one function from a Call to its outputs, in registry.h's table.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "onnx/item.h"
#include "onnx/proto.h"

namespace samebytes::onnx {

using Attributes = std::map<std::string, const ::onnx::AttributeProto*>;

// Steps that come one after the other: those of all loops and scans of a run together, and of a recurrent layer.
constexpr std::int64_t kMostSteps = 1'000'000;

struct Call {
  std::string op;    // "Conv"
  std::string name;  // of the node: "Conv 'features.0'"
  int opset = 0;
  bool training = false;
  std::vector<Item> in;
  Attributes attributes;
  std::size_t outputs = 1;  // that the node names

  bool has(std::size_t i) const { return i < in.size() && in[i].defined(); }
  const Item& at(std::size_t i) const {
    if (!has(i)) refuse("input " + std::to_string(i) + " is left out");
    return in[i];
  }
  Type type(std::size_t i = 0) const { return at(i).type; }
  bool is_floating(std::size_t i = 0) const { return onnx::is_floating(type(i)); }
  Sizes sizes(std::size_t i = 0) const { return sizes_of(at(i)); }
  int rank(std::size_t i = 0) const { return static_cast<int>(sizes(i).size()); }
  Array array(std::size_t i = 0) const { return plain(at(i)); }
  Array optional(std::size_t i) const { return has(i) ? array(i) : Array(); }
  Array floating(std::size_t i = 0) const;  // refuses integers

  bool has_attribute(const std::string& key) const { return attributes.contains(key); }
  std::int64_t integer(const std::string& key, std::int64_t otherwise) const;
  double real(const std::string& key, double otherwise) const;
  Type element_type(const std::string& key, Type otherwise) const;  // refuses what is no type of numbers
  std::string text(const std::string& key, const std::string& otherwise) const;
  std::vector<std::int64_t> integers(const std::string& key, std::vector<std::int64_t> otherwise = {}) const;
  std::vector<double> reals(const std::string& key) const;
  std::vector<std::string> texts(const std::string& key) const;
  // A negative axis counts from the end; refuses one outside.
  int axis(std::int64_t axis, int rank) const;

  // Throws ArgumentError with the node's name.
  [[noreturn]] void refuse(const std::string& why) const;
};

// A tensor of the file, without external data.
Tensor tensor_of(const ::onnx::TensorProto& proto);

}  // namespace samebytes::onnx
