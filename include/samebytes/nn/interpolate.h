// Interpolate: sequences, images and volumes of another size, channels last, in every mode of interpolate().
#pragma once

#include "samebytes/nn/module.h"
#include "samebytes/ops/resize.h"

namespace samebytes::nn {

// x [N, one to three axes, C], each spatial axis resized, see interpolate() (ops/resize.h), whose options these are:
//   nn::Interpolate({.scale = {2}, .mode = InterpolateMode::cubic, .antialias = true})
// Throws ArgumentError unless exactly one of size and scale is given, for sizes below 1 and scales that are not above
// 0, and for align_corners and antialias with a mode that has none.
class Interpolate final : public Module {
 public:
  explicit Interpolate(const InterpolateOptions& options);
  Array forward(const Array& x) override;
  std::string kind() const override { return "Interpolate"; }
  std::string describe() const override;
  const InterpolateOptions& options() const { return options_; }

 private:
  InterpolateOptions options_;
};

}  // namespace samebytes::nn
