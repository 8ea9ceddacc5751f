// Reverse mode: the gradient of a scalar as more nodes of the same graph, so it is planned and fused like the rest.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/array.h"

namespace samebytes {

// d loss / d wrt[i], each with the shape of wrt[i]; zeros where loss does not depend on it. Nothing runs.
// Throws ArgumentError unless loss has one element, is floating, and its graph is still there: an array that was
// evaluated has dropped its inputs, so take gradients before value().
std::vector<Array> gradients(const Array& loss, std::span<const Array> wrt);

// The same, and `on_final` is told of each gradient (its place in wrt) as soon as nothing is added to it any more, in
// the order of the backward pass: that of the last layer first. Nodes that it builds run at that place, before the rest
// of the backward pass.
using FinalGradient = std::function<void(std::size_t index, const Array& gradient)>;
std::vector<Array> gradients(const Array& loss, std::span<const Array> wrt, const FinalGradient& on_final);

// Value and gradients of f at x.
std::pair<Array, std::vector<Array>> value_and_grad(const std::function<Array(std::span<const Array>)>& f,
                                                    std::span<const Array> x);

// No gradient flows through nodes built in this block; layers do not update their running statistics.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool previous_;
};
bool is_grad_enabled();

// The same values, cut off from the gradient.
Array stop_gradient(const Array& x);

// An op from the user's own OpenCL C. The source defines
//   __kernel void <entry>(ARRAY(const real, src0), ..., ARRAY(real, dst), const int n, const real p0, ...)
// and is called with one work-item per `elements_per_item` elements of dst (n elements in all); common.clh is included,
// the arguments are dense. `gradient` gets dy, the inputs and the output and returns one array per input; without it
// the op has none.
struct CustomOp {
  std::string name;
  std::string entry;
  std::string source;
  int elements_per_item = 1;
  std::function<std::vector<Array>(const Array& dy, std::span<const Array> inputs, const Array& y)> gradient = {};
};
// Throws ArgumentError for empty inputs or mixed engines; BuildError with name, defines and log when it is first run.
Array custom_op(const CustomOp& op, std::span<const Array> inputs, const Shape& shape, Dtype dtype = f32,
                std::span<const double> parameters = {});

}  // namespace samebytes
