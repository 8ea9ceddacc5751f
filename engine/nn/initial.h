// Initial values of parameters: cells whose values are generated on the device at their first use.
#pragma once

#include <cmath>
#include <string>

#include "samebytes/array.h"
#include "samebytes/error.h"
#include "samebytes/nn/module.h"

namespace samebytes::nn {

// Uniform in +-bound, and normal with mean 0.
inline Array initial_uniform(const Shape& shape, double bound, Dtype dtype) {
  return uniform(shape, -bound, bound, dtype, next_random_key(RandomDomain::initialisation));
}
inline Array initial_normal(const Shape& shape, double deviation, Dtype dtype) {
  return normal(shape, 0.0, deviation, dtype, next_random_key(RandomDomain::initialisation));
}

// Uniform in +-1 / sqrt(fan_in): PyTorch's kaiming_uniform_ with a = sqrt(5), and its biases.
inline Parameter uniform_cell(const Shape& shape, std::int64_t fan_in, Dtype dtype, std::string name) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  return Parameter(cell(initial_uniform(shape, bound, dtype), std::move(name)));
}

inline void require_positive(const char* layer, const char* option, std::int64_t came) {
  if (came < 1)
    throw ArgumentError(std::string(layer) + ": " + option + " must be at least 1, got " + std::to_string(came));
}

// A channels-first image or sequence, PyTorch's order, in a layer that is channels last.
inline void refuse_channels_first(const std::string& layer, std::int64_t channels, const Array& x) {
  const Shape& shape = x.shape();
  const int rank = shape.rank();
  if (rank < 3 || rank > 5 || shape.back() == channels || shape[1] != channels) return;
  constexpr const char* kSpatial[] = {"L", "H, W", "D, H, W"};
  constexpr const char* kAxes[] = {"0, 2, 1", "0, 2, 3, 1", "0, 2, 3, 4, 1"};
  const std::string spatial = kSpatial[rank - 3];
  throw ArgumentError(layer + ": x must be channels last, [N, " + spatial + ", " + std::to_string(channels) +
                      "], it is " + shape.to_string() + ", which looks like channels first, [N, " +
                      std::to_string(channels) + ", " + spatial + "]; call contiguous(transpose(x, {" +
                      kAxes[rank - 3] + "})) before the network, once");
}

inline void require_groups(const char* layer, int groups, std::int64_t in, std::int64_t out) {
  if (in % groups || out % groups)
    throw ArgumentError(std::string(layer) + ": groups must divide in and out, got " + std::to_string(groups) +
                        " groups of " + std::to_string(in) + " and " + std::to_string(out));
}

inline void require_real(const char* layer, Dtype dtype) {
  if (dtype != f32 && dtype != f64)
    throw ArgumentError(std::string(layer) + ": parameters must be f32 or f64, got " + std::string(name_of(dtype)));
}

}  // namespace samebytes::nn
