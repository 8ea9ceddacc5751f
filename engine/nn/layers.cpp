// Layers without parameters.
#include <mutex>

#include "samebytes/error.h"
#include "samebytes/nn/dropout.h"
#include "samebytes/nn/flatten.h"
#include "samebytes/ops.h"

namespace samebytes::nn {

Dropout::Dropout(double p) : p_(p) {
  if (!(p >= 0.0 && p < 1.0)) throw ArgumentError("Dropout: p must be in [0, 1), got " + std::to_string(p));
}

Array Dropout::forward(const Array& x) { return is_training() && p_ > 0.0 ? dropout(x, p_) : x; }

std::string Dropout::describe() const {
  std::string number = std::to_string(p_);
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number += '0';
  return "Dropout(" + number + ")";
}

Array Flatten::forward(const Array& x) {
  const Shape seen = x.shape().rank() == 4 ? Shape{x.shape()[1], x.shape()[2], x.shape()[3]} : Shape{};
  static std::mutex mutex;  // threads may call one network at once
  const std::lock_guard lock(mutex);
  if (!(seen == seen_)) seen_ = seen;
  return flatten(x, 1);
}

void Flatten::visit(Visitor& visitor) {
  visitor.flatten(options_.channels > 0 ? options_.channels : seen_.rank() == 3 ? seen_.back() : 0);
}

}  // namespace samebytes::nn
