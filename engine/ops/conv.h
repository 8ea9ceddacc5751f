// Convolution of one, two or three axes as ops: the forward pass and the gradients for source and weight, which are the
// three partial derivatives of one trilinear form, so each one's gradient is made of the other two. Arguments were
// checked by the caller (conv_nd.cpp, conv_transpose.cpp); arrays are floating, of one dtype (16-bit
// ones in one group of at most kMostNarrowChannels channels), none of them empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "graph/op.h"
#include "samebytes/array.h"

namespace samebytes::detail {

// Most channels of a 16-bit source whose widened lines still fit.
inline constexpr std::int64_t kMostNarrowChannels = 4096;

// How a convolution is computed: automatic leaves the choice to SAMEBYTES_CONV, shape and tuner; winograd falls back to
// direct where its kernels do not apply (winograd.h).
enum class ConvAlgorithm : std::uint8_t { automatic, direct, winograd };

// Per axis in the order depth, height, width; an image leaves the first unused, a sequence the first two.
struct ConvAttributes {
  int axes = 2;
  int stride[3] = {1, 1, 1};
  int pad[3] = {0, 0, 0};
  int dilation[3] = {1, 1, 1};
  int groups = 1;
  ConvAlgorithm algorithm = ConvAlgorithm::automatic;
  bool operator==(const ConvAttributes&) const = default;
};

// src [N, axes..., C], weight [taps..., C / groups, K], bias [K] of the dtype that sums have (f32 for 16 bits) or an
// empty handle -> dst [N, axes..., K]; the shape is given because a transposed convolution's gradient may leave places
// at the end out.
Array conv_forward(const Array& src, const Array& weight, const Array& bias, const Shape& dst,
                   const ConvAttributes& attributes);
// dy of dst's shape, weight, bias [C] or an empty handle -> an array of the shape of src
Array conv_bwd_input(const Array& dy, const Array& weight, const Array& bias, const Shape& src,
                     const ConvAttributes& attributes);
// src, dy -> an array of the shape of weight
Array conv_bwd_filter(const Array& src, const Array& dy, const Shape& weight, const ConvAttributes& attributes);

// The arguments of the conv_forward call that made `a`, if `a` has not run and this handle is the only one to it, so
// that another convolution may replace it; nullopt for every other array.
struct ConvCall {
  Array src, weight, bias;
  ConvAttributes attributes;
};
std::optional<ConvCall> replaceable_conv(const Array& a);

// Places of an axis that padding, strides and taps lead to are fewer: sums of some are ints in the kernels.
inline constexpr std::int64_t kMostConvReach = std::int64_t{1} << 28;

// The sizes of the axes of dst; 0 or less if the kernel does not fit.
std::int64_t conv_size(std::int64_t in, std::int64_t kernel, int stride, int pad, int dilation);

// What both directions check: `name` of axis k of `axes` is stride, stride_h and so on. Throw ArgumentError.
std::string conv_option(const char* name, int axes, int axis);
void check_conv_option(const char* op, const std::string& name, int v, int least);
void check_conv_attributes(const char* op, const ConvAttributes& attributes);
// Refuses sequences, images and volumes whose offsets do not fit the kernels' ints. `both` describes the arguments.
void check_conv_size(const char* op, const Shape& shape, const std::string& both);
// Refuses what leads from places of `small` to places of `large`, which has the padding, beyond these ints: a
// convolution's src is large, a transposed one's dst. Their sizes follow from each other.
void check_conv_reach(const char* op, const Shape& large, const Shape& small, const Shape& weight,
                      const ConvAttributes& attributes, const std::string& both);

// The dtype of the result, and the one in which the kernels take such arrays: 16 bits, or wider.
Dtype widest_of(const Array& src, const Array& weight, const Array& bias);
Dtype conv_dtype(const ConvAttributes& attributes, std::int64_t src_channels, std::int64_t dst_channels, Dtype widest);

}  // namespace samebytes::detail
