// ONNX models: a file as a Module that runs and trains. docs/onnx.md lists the operators.
// Integers and bools that the graph computes, as in the arithmetic of shapes, stay on the host, exact in their own
// type; floating values are arrays on the device. A graph that is written channels first runs channels last inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/nn/module.h"

namespace samebytes::detail {
class Recordings;
}

namespace samebytes::onnx {

// Element types, with the numbers of ONNX's TensorProto.DataType.
enum class Type : std::uint8_t {
  none = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  bf16 = 16
};

// An exact tensor in host memory, dense, last axis fastest: for the types that an Array does not have.
struct Tensor {
  Type type = Type::f32;
  std::vector<std::int64_t> sizes;
  std::vector<std::byte> bytes;
};

// A floating input is an Array. An integer or bool one is a Tensor, or an Array of i32, i64, u8 or bool where that is
// enough.
using Value = std::variant<Array, Tensor>;

// An input or output as the file declares it; a size is a number, a symbol, or "?".
struct Port {
  std::string name;
  Type type = Type::none;
  std::vector<std::string> sizes;
};

struct Summary {
  int opset = 0;
  std::string producer;
  std::vector<Port> inputs, outputs;
  std::map<std::string, std::int64_t> operators;  // how many nodes of each, those of subgraphs, too
  std::vector<Port> tensors;                      // the initializers
};

// Reads what the file declares: no engine, no weights, and operators that are not supported are counted like others.
// Throws IoError for a file that is missing or damaged; Error where the library was built without ONNX.
Summary read_summary(const std::string& path);

std::string name_of(Type type);  // as ONNX has it: "float", "int64"

struct LoadOptions {
  bool frozen = false;  // the model's parameters are left out of parameters() until freeze(false)
  // The first size of every input may be any number, also where the file fixes it, as exporters do unless they are
  // told otherwise. A graph that has the number in one of its nodes then refuses other ones when it runs.
  bool any_batch = false;
  // What Constant nodes hold is a parameter, too, where an operator reads it as a weight: filters, matrices of MatMul
  // and Gemm, biases, slopes, and scales and statistics of normalizations. Paddle's exporter writes all weights so.
  bool trainable_constants = false;
};

// The linear layer behind the first output: a Gemm, or a MatMul with or without an Add; between it and the output at
// most soft-max, flattening, dropout and identities.
struct Head {
  std::string weight, bias;  // parameters; bias may be empty
  std::int64_t in = 0, classes = 0;
  bool gives_probabilities = false;  // the output is behind a Softmax
};

// A loaded model, in evaluation mode. Parameters have the names of the file's initializers; those of convolutions lie
// as Layout::conv says. train() turns on dropout and the batch statistics of BatchNormalization. A copy has parameters
// of its own.
class Model : public nn::Module {
 public:
  const std::vector<std::string>& inputs() const;  // without initializers
  const std::vector<std::string>& outputs() const;
  Summary summary() const;
  // Adds the graph for these inputs; symbolic sizes are those of the inputs. An integer output is a Tensor.
  // Throws ArgumentError, naming the node, for an input that is missing, unknown or of another type or rank, and for
  // what an operator does not support.
  std::map<std::string, Value> run(const std::map<std::string, Value>& inputs);
  // For models with one input and a floating first output. Throws ArgumentError for others.
  Array forward(const Array& x) override;
  // Throws ArgumentError, saying which node is in the way, for a model that does not end in such a layer.
  Head head() const;
  // Makes the parameters of head() new ones for so many classes, uniform in +-1 / sqrt(in) as nn::Linear has them.
  // Throws ArgumentError as head() does, and where another node reads the same weight.
  void replace_head(std::int64_t classes);
  void visit(nn::Visitor& visitor) override;
  std::string kind() const override { return "OnnxModel"; }

 private:
  friend Model load(const std::string& path, const LoadOptions& options);
  friend void save(const std::string& path, const Model& model);
  struct File;
  struct Weight {
    std::string name;
    nn::Parameter cell;
    nn::Layout layout = nn::Layout::plain;
    bool is_buffer = false;
  };
  // The graphs of earlier runs, to be built again without reading the nodes. A copy has its own.
  struct Recorded {
    Recorded();
    Recorded(const Recorded& other);
    Recorded& operator=(const Recorded& other);
    std::shared_ptr<detail::Recordings> graphs;
  };
  Weight& weight(const std::string& name);
  std::map<std::string, Value> again(const std::map<std::string, Value>& inputs);
  std::map<std::string, Value> read(const std::map<std::string, Value>& inputs);
  std::shared_ptr<const File> file_;
  std::vector<Weight> weights_;
  Recorded recorded_;
};

// Reads a model of opsets 7 to 28, or of an older one whose operators are the same in opset 7. Throws IoError for a
// file that is missing or damaged, or whose external data are not inside its folder; ArgumentError, which lists all
// operators of the file that are not supported with the names of their nodes; Error where the library was built without
// ONNX.
Model load(const std::string& path, const LoadOptions& options = {});

struct SaveOptions {
  std::vector<std::string> inputs, outputs;  // names; else "input" and "output", numbered where there are several
  // Inputs and outputs of four and five axes are [N, ..., C] here and [N, C, ...] in the file, as other frameworks have
  // images and volumes. Not for a Model, which has the order of its file anyway.
  bool channels_first = true;
};
using Traced = std::function<std::vector<Array>(std::span<const Array> inputs)>;

// Writes what the module computes in evaluation mode as a model of opset 18 for inputs of the example's shape and
// dtype. The module is traced, not evaluated: its parameters and buffers are initializers with PyTorch's names and
// order of axes, what depends on neither them nor the input is a constant. Throws ArgumentError, which lists all
// operations that cannot be written, and for a model over 2 GB; IoError where the file cannot be written; Error where
// the library was built without ONNX.
void save(const std::string& path, nn::Module& module, const Array& example, const SaveOptions& options = {});
// Writes the model's own graph, its names and open sizes with it, with the parameters and buffers that it has now.
// External data become part of the file. Throws as the others do.
void save(const std::string& path, const Model& model);
// The same as the first for a function of several inputs and results; `state` (Module::state()) names cells that it
// reads.
void save(const std::string& path, const Traced& function, std::span<const Array> examples,
          const std::vector<nn::NamedArray>& state = {}, const SaveOptions& options = {});

}  // namespace samebytes::onnx
