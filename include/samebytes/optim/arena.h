// ParameterArena: lays many parameters into one flat cell, so that clipping and updating a whole model take one or two
// launches, whatever its number of layers. The parameters remain cells that layers read, and become parts of the flat
// one. An arena is a value; the parameters' engine must be alive, and the parameters belong to the arena while any copy
// of it lives.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/array.h"

namespace samebytes::optim {

class ParameterArena {
 public:
  // Lays the cells side by side in this order, each at a multiple of 128 bytes with zeros in the gaps; their values
  // move once. Throws ArgumentError for no cells, a duplicate cell, a cell of another live arena, and mixed dtypes.
  explicit ParameterArena(std::span<const Array> parameters, std::string name = "parameters");

  const Array& values() const { return flat_.values; }  // the flat cell [size()]
  const std::vector<Array>& parameters() const { return parameters_; }
  const std::vector<std::int64_t>& offsets() const { return flat_.offsets; }  // of each parameter, in elements
  std::int64_t size() const { return values().size(); }                       // elements, including gaps
  Dtype dtype() const { return values().dtype(); }

  // Packs one gradient for each parameter into one flat array [size()] with zeros in the gaps. Producers write into it
  // directly unless another handle holds their result. Throws ArgumentError if number or shapes differ from the
  // parameters'. With `releases` the flat array never exists as a whole: each run of
  // parameters is updated as soon as its gradients are computed.
  Array pack(std::span<const Array> gradients, bool releases = false) const;
  // The same into a flat cell that zeros_like() made: a node that overwrites it (update_parts, ops/update_parts.h).
  Array store(const Array& flat, std::span<const Array> gradients) const;
  // A flat cell [size()] of zeros, for moments, with the parameters' dtype or `dtype`. category: how memory reports
  // count it.
  Array zeros_like(std::string name) const { return zeros_like(std::move(name), dtype()); }
  Array zeros_like(std::string name, Dtype dtype, MemoryCategory category = MemoryCategory::optimizer) const;

 private:
  void check(std::span<const Array> gradients) const;

  std::vector<Array> parameters_;
  FlatCells flat_;
};

}  // namespace samebytes::optim
