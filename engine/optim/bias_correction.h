// 1 - beta^t of the moments of Adam and its relatives: a number, or an array of one element where a scaler may have
// skipped steps, so that only the device knows t.
#pragma once

#include <cmath>
#include <cstdint>

#include "samebytes/ops/pointwise.h"

namespace samebytes::optim {

class BiasCorrection {
 public:
  // `taken`: Optimizer::steps_taken(); where it is empty, t is `step`.
  BiasCorrection(double beta, std::int64_t step, const Array& taken)
      : number_(1.0 - std::pow(beta, static_cast<double>(step))) {
    if (taken.defined() && beta > 0.0) array_ = -expm1(taken * std::log(beta));
  }
  // x * factor / (1 - beta^t)
  Array divide(const Array& x, double factor) const {
    return array_.defined() ? x * (factor / array_) : x * (factor / number_);
  }
  // x / sqrt(1 - beta^t)
  Array divide_by_root(const Array& x) const {
    return array_.defined() ? x * rsqrt(array_) : x * (1.0 / std::sqrt(number_));
  }
  // 1 / (1 - beta^t) and 1 / sqrt(1 - beta^t), as an array of one element.
  Array inverse() const { return array_.defined() ? 1.0 / array_ : full({1}, 1.0 / number_); }
  Array inverse_root() const { return array_.defined() ? rsqrt(array_) : full({1}, 1.0 / std::sqrt(number_)); }

 private:
  double number_;
  Array array_;
};

}  // namespace samebytes::optim
