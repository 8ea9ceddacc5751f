// Convolutions of stride 1 by minimal filtering: of 3x3 taps, whose tile of 2 x 4 outputs costs 24 multiplications per
// pair of channels instead of 72, and along a line of 3, 4 or 5 taps, where 6 multiplications make 4, 3 or 2 outputs
// (S. Winograd, Arithmetic Complexity of Computations, 1980; A. Lavin and S. Gray, Fast algorithms for convolutional
// neural networks, 2016). conv.cpp asks here before it launches its direct kernels; docs/decisions/winograd.md says
// where it pays and how exact it is.
#pragma once

#include "graph/launch.h"
#include "ops/conv.h"
#include "ops/conv_geometry.h"

namespace samebytes::detail {

enum class ConvPass : std::uint8_t { forward, input, filter };

// SAMEBYTES_CONV; automatic if it is not set. Throws ArgumentError for an unknown word.
ConvAlgorithm conv_algorithm_asked_for();

// Whether a pass uses minimal filtering: if the attributes or else SAMEBYTES_CONV request it and the kernels support
// it; otherwise if the tuner chose it, on shapes where it wins, for values computed in f32. Never with
// EngineOptions::check_nan, which must name the op that made a NaN and show the results of the direct kernels.
bool is_winograd(const Launch& run, const ConvGeometry& g, ConvPass pass, Dtype dtype);

// The forward pass, or transposed the input gradient, of src and weight into the node's result, with its epilogue.
// `transformed`: the weight as WinogradWeights makes it, or none.
void launch_winograd(Launch& run, const ConvGeometry& g, Operand src, Operand weight, Operand bias, bool transposed,
                     Operand transformed = Launch::none());

// How a weight is transformed, for a pass over so many channels that gives so many columns.
struct WinogradWeights {
  int axes;
  std::int64_t taps, c, k;  // taps along a line; unused for 3x3
  bool transposed;          // for the input gradient
  static WinogradWeights of(const ConvGeometry& g, bool transposed);
  std::int64_t depth() const { return transposed ? k : c; }
  std::int64_t columns() const { return transposed ? c : k; }
  std::int64_t size(const Launch& run, Dtype real) const;  // values of the transformed weight
  void launch(Launch& run, Operand weight, Operand transformed, Dtype dtype) const;
};

// The gradient for the weight, of the node's inputs src and dy. Whether it made that of the bias, the second result, on
// its way, where there is one.
bool launch_winograd_filter(Launch& run, const ConvGeometry& g, bool with_bias);

// The same along a line (winograd_1d.cpp); called by those above.
bool is_winograd_1d_possible(const Launch& run, const ConvGeometry& g, ConvPass pass, Dtype real);
bool is_winograd_1d_worthwhile(const ConvGeometry& g, ConvPass pass);
void launch_winograd_1d(Launch& run, const ConvGeometry& g, Operand src, Operand weight, Operand bias, bool transposed,
                        Operand transformed);
inline constexpr std::int64_t kWinograd1dPositions = 6;  // of a transformed tile
bool launch_winograd_1d_filter(Launch& run, const ConvGeometry& g, bool with_bias);

// Both: fewer tiles do not pay for the transformed weights; work is shared by the shape alone, so results do not change
// with the number of threads. Values of a block of tiles in the first-level cache; of all parts of a weight gradient,
// whose sum costs little from the second-level one; parts, on a GPU too, and tiles of a part and of a block at least.
struct WinogradWork {
  static constexpr std::int64_t least_tiles = 32, block_values = 12288, wanted_groups = 32;
  static constexpr std::int64_t line_block_values = 6144;  // 24 KiB, beside the weights and the sums in a cache of 32
  static constexpr std::int64_t most_sums = 204800, least_parts = 2, most_parts = 16, gpu_parts = 64;
  static constexpr std::int64_t least_filter_tiles = 64, least_filter_block = 8;
};

// How a weight gradient is summed: parts of `each` tiles; on a CPU device in blocks of tiles, and rows of positions of
// a group.
struct WinogradParts {
  std::int64_t each = 0, splits = 0, block = 0, rows = 1;
};
WinogradParts winograd_parts(std::int64_t tiles, std::int64_t wanted);  // of about `wanted` parts

// Channels that the kernels take at a time: a vector, or one.
std::int64_t winograd_lanes(const Launch& run, Dtype real);

}  // namespace samebytes::detail
