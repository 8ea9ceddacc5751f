// ParameterArena: many parameters as one flat cell, so that clipping and the update of a whole model are one or two
// launches, whatever its number of layers. The parameters stay what they were: cells that layers read, parts of the
// flat one. An arena is a value; it needs the parameters' engine alive, and its parameters belong to it while any copy
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
  // Lays the cells side by side in this order, each at a multiple of 128 bytes with zero gaps; their values move once.
  // Throws ArgumentError for no cells, a cell that comes twice or lies in another living arena, and mixed dtypes.
  explicit ParameterArena(std::span<const Array> parameters, std::string name = "parameters");

  const Array& values() const { return flat_.values; }  // the flat cell [size()]
  const std::vector<Array>& parameters() const { return parameters_; }
  const std::vector<std::int64_t>& offsets() const { return flat_.offsets; }  // of each parameter, in elements
  std::int64_t size() const { return values().size(); }                       // elements with gaps
  Dtype dtype() const { return values().dtype(); }

  // One gradient for each parameter as one flat array [size()] with zero gaps. Their producers write there directly
  // where no other handle holds them. Throws ArgumentError where number or shapes differ from the parameters'. With
  // `releases` it is never there as a whole (pack_to_release).
  Array pack(std::span<const Array> gradients, bool releases = false) const;
  // The same into a flat cell that zeros_like() made: a node that overwrites it (update_parts, ops/update_parts.h).
  Array store(const Array& flat, std::span<const Array> gradients) const;
  // A flat cell [size()] of zeros, for moments: of the parameters' dtype or of `dtype`; what memory counts it as.
  Array zeros_like(std::string name) const { return zeros_like(std::move(name), dtype()); }
  Array zeros_like(std::string name, Dtype dtype, MemoryCategory category = MemoryCategory::optimizer) const;

 private:
  void check(std::span<const Array> gradients) const;

  std::vector<Array> parameters_;
  FlatCells flat_;
};

}  // namespace samebytes::optim
