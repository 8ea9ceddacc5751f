// The tensors of a folder as parameters: safetensors files, one or several with an index, mapped. An architecture takes
// each of its parameters by name and shape, so that nothing is made that the files do not have.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "samebytes/nn/module.h"
#include "samebytes/ops/quantised.h"

namespace samebytes::models {

// How a parameter starts where no file gives it.
enum class Initial : std::uint8_t { normal, zeros, ones };

// What matrices of projections become when they are loaded: blocks of Q8_0, of Q4_K (Q4_0 where rows are no multiple of
// 256 values), or of NF4. Layers whose rows are no multiple of a block's values stay as they are.
enum class Quantise : std::uint8_t { none, q8, q4, nf4 };

struct WeightReport {
  std::size_t mapped_bytes = 0;     // of parameters that use the files' own pages
  std::size_t converted_bytes = 0;  // in the files, of those that were copied, in another layout or a wider type
  std::size_t quantised_bytes = 0;  // of matrices in quantised blocks; those that lie in the file are mapped, too
  std::vector<std::string> unused;  // tensors that the architecture has no use for
};

// A tensor of another kind of file, as an architecture asks for it.
struct WeightEntry {
  Shape shape;                    // as in a safetensors file of the same model
  std::function<Array()> values;  // the only handle on an array with its own bytes
  std::size_t bytes = 0;          // in the file
  bool is_mapped = false;         // whether the array lies in the file
  // Of a matrix that may stay quantised: its type, and its blocks, u8 [rows, bytes].
  std::optional<QuantisedType> type = {};
  std::function<Array()> blocks = {};
};

// The weight of a linear layer: a parameter, or frozen quantised blocks.
struct Matrix {
  nn::Parameter weight{};
  Array blocks{};  // u8 [out, bytes of a row], or an empty handle
  QuantisedType type = QuantisedType::q8_0;
  bool is_quantised() const { return blocks.defined(); }
};

// A set of names and a place in it; a value whose copies share the files.
class Weights {
 public:
  // Opens FOLDER/model.safetensors, or the files that FOLDER/model.safetensors.index.json names, which must lie in the
  // folder. Reads headers only. With `dtype` floating matrices are converted to it. Throws IoError for missing and
  // damaged files, for a name in two files, and for an index that disagrees with them.
  // What take_matrix() gives is quantised where `quantise` says so.
  static Weights open(const std::string& folder, std::optional<Dtype> dtype = {}, Quantise quantise = Quantise::none);
  // Tensors of another kind of file, which `path` names in errors.
  static Weights of(const std::string& path, std::map<std::string, WeightEntry> entries);
  // Without files: normal values with this deviation, zeros and ones, made at their first use.
  static Weights fresh(double deviation);

  Weights at(const std::string& name) const;           // the names below it: at("model").at("layers.0")
  const std::string& place() const { return place_; }  // "model.layers.0"; empty at the top
  bool is_fresh() const;
  // Whether the files have this name; `otherwise` without files.
  bool has(const std::string& name, bool otherwise) const;
  // The sizes in the file; an empty shape for a name that is not there.
  Shape shape_of(const std::string& name) const;

  // The parameter with the shape that it has here: for a convolution [taps..., in / groups, out], for
  // linear_transposed [out, in], which files have turned. A matrix in its plain layout lies in the mapped file, with
  // its 16-bit type where it has one; what is turned, has one axis or is f64 becomes f32, on the device. Throws IoError
  // for a missing tensor, another shape, and types that are not floating.
  nn::Parameter take(const std::string& name, const Shape& shape, nn::Layout layout = nn::Layout::plain,
                     Initial initial = Initial::normal) const;
  // The same for the weight [out, in] of a linear layer, which may be quantised; one that is turned in the file is not.
  Matrix take_matrix(const std::string& name, const Shape& shape, nn::Layout layout) const;
  // The same for an embedding or a head [V, C], which is never quantised here, but may lie in blocks in the file.
  Matrix take_table(const std::string& name, const Shape& shape) const;
  // Overwrites parameters and buffers of an existing layer, whose names continue this place.
  void load(nn::Module& layer) const;

  // What was taken so far. Names of Hugging Face's own buffers are not counted as unused.
  WeightReport report() const;

 private:
  struct State;
  Weights(std::shared_ptr<State> state, std::string place);
  std::shared_ptr<State> state_;
  std::string place_;
};

}  // namespace samebytes::models
