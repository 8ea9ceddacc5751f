#include "samebytes/nn/sequential.h"

#include <algorithm>

#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::nn {

void AnyModule::throw_without_copies(const Module& module) {
  throw ArgumentError("copy of " + module.describe() +
                      ": its type has no copy constructor; give it one, or make it anew");
}

Module& Sequential::operator[](std::size_t i) const {
  if (i >= modules_.size())
    throw ArgumentError("Sequential: has " + std::to_string(modules_.size()) + " modules, number " + std::to_string(i) +
                        " was asked for");
  return *modules_[i];
}

Array Sequential::run(std::size_t i, const Array& x) const {
  try {
    return (*modules_[i])(x);
  } catch (const ArgumentError& error) {
    throw ArgumentError("layer " + std::to_string(i) + ", " + modules_[i]->describe() + ": " + error.what());
  }
}

// The first child, and every child with weights except the first such child.
std::vector<std::size_t> Sequential::block_begins() const {
  std::vector<std::size_t> begins{0};
  bool has_weights = false;
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    const std::vector<NamedArray> state = modules_[i]->named_parameters();
    if (std::none_of(state.begin(), state.end(), [](const NamedArray& p) { return p.array.shape().rank() >= 2; }))
      continue;
    if (has_weights) begins.push_back(i);
    has_weights = true;
  }
  return begins;
}

Array Sequential::forward(const Array& x) {
  Array y = x;
  if (!is_checkpointed()) {
    for (std::size_t i = 0; i < modules_.size(); ++i) y = run(i, y);
    return y;
  }
  const std::vector<std::size_t> begins = block_begins();
  run_blocks(begins.size(), [&](std::size_t b) {
    const std::size_t end = b + 1 < begins.size() ? begins[b + 1] : modules_.size();
    for (std::size_t i = begins[b]; i < end; ++i) y = run(i, y);
  });
  return y;
}

Array checkpoint_sequential(Sequential& modules, int segments, const Array& x) {
  std::vector<std::function<Array(const Array&)>> functions;
  for (std::size_t i = 0; i < modules.size(); ++i)
    functions.emplace_back([&modules, i](const Array& y) { return modules[i](y); });
  return samebytes::checkpoint_sequential(functions, segments, x);
}

void Sequential::visit(Visitor& visitor) {
  for (std::size_t i = 0; i < modules_.size(); ++i) visitor.child(std::to_string(i), *modules_[i]);
}

Module& ModuleList::operator[](std::size_t i) const {
  if (i >= modules_.size())
    throw ArgumentError("ModuleList: has " + std::to_string(modules_.size()) + " modules, number " + std::to_string(i) +
                        " was asked for");
  return *modules_[i];
}

void ModuleList::visit(Visitor& visitor) {
  for (std::size_t i = 0; i < modules_.size(); ++i) visitor.child(std::to_string(i), *modules_[i]);
}

Array Residual::forward(const Array& x) { return (*block_)(x) + (shortcut_ ? (*shortcut_)(x) : x); }

void Residual::visit(Visitor& visitor) {
  visitor.child("block", *block_);
  if (shortcut_) visitor.child("shortcut", *shortcut_);
}

}  // namespace samebytes::nn
