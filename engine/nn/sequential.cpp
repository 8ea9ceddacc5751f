#include "samebytes/nn/sequential.h"

#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::nn {

Module& Sequential::operator[](std::size_t i) const {
  if (i >= modules_.size())
    throw ArgumentError("Sequential: has " + std::to_string(modules_.size()) + " modules, number " + std::to_string(i) +
                        " was asked for");
  return *modules_[i];
}

Array Sequential::forward(const Array& x) {
  Array y = x;
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    try {
      y = (*modules_[i])(y);
    } catch (const ArgumentError& error) {
      throw ArgumentError("layer " + std::to_string(i) + ", " + modules_[i]->describe() + ": " + error.what());
    }
  }
  return y;
}

void Sequential::visit(Visitor& visitor) {
  for (std::size_t i = 0; i < modules_.size(); ++i) visitor.child(std::to_string(i), *modules_[i]);
}

Array Residual::forward(const Array& x) { return (*block_)(x) + (shortcut_ ? (*shortcut_)(x) : x); }

void Residual::visit(Visitor& visitor) {
  visitor.child("block", *block_);
  if (shortcut_) visitor.child("shortcut", *shortcut_);
}

}  // namespace samebytes::nn
