// What layers with a quantizable weight compute while quantize() calibrates and after it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "samebytes/nn/module.h"
#include "samebytes/nn/quantize.h"

namespace samebytes::nn {

// The range of the inputs that a layer has seen so far.
class SeenRange {
 public:
  explicit SeenRange(std::string layer) : layer_(std::move(layer)) {}
  void add(const Array& x);  // evaluates x; throws ArgumentError for a value that is not finite
  const std::optional<Int8Range>& range() const { return range_; }

 private:
  std::string layer_;
  std::optional<Int8Range> range_;
};

// The i8 form of a weight, or while quantize() calibrates, the range of what the weight multiplies.
class QuantizedWeight {
 public:
  explicit QuantizedWeight(std::shared_ptr<SeenRange> seen) : seen_(std::move(seen)) {}
  QuantizedWeight(Int8Weight form, const std::optional<Int8Range>& range) : form_(std::move(form)), range_(range) {}

  SeenRange* seen() const { return seen_.get(); }  // null: not calibrating
  // Throws ArgumentError where the weight was overwritten since this was made.
  const Int8Weight& form(const Parameter& weight) const;
  const std::optional<Int8Range>& range() const { return range_; }
  std::int64_t bytes() const;
  // The same for a copy of the weight; null where the weight was overwritten.
  std::shared_ptr<const QuantizedWeight> of_copy(const Parameter& weight, const Parameter& copy) const;

 private:
  std::shared_ptr<SeenRange> seen_;
  Int8Weight form_;
  std::optional<Int8Range> range_;
};

// Require: weight.quantized().
Array quantized_linear(const Array& x, const Parameter& weight, const Array& bias);
Array quantized_conv(const Array& x, const Parameter& weight, const Array& bias,
                     const samebytes::Conv1dOptions& options);
Array quantized_conv(const Array& x, const Parameter& weight, const Array& bias,
                     const samebytes::Conv2dOptions& options);

}  // namespace samebytes::nn
