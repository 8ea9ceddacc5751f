// Reverse mode: the gradient of a scalar as more nodes of the same graph, so it is planned and fused like the rest.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/array.h"

namespace samebytes {

// Told of each gradient (its place in wrt) as soon as nothing is added to it any more, in the order of the backward
// pass: that of the last layer first. Nodes that it builds run at that place, before the rest of the backward pass.
using FinalGradient = std::function<void(std::size_t index, const Array& gradient)>;

struct GradientOptions {
  bool allow_unused = false;  // zeros for arrays that loss does not depend on, instead of an error
  FinalGradient on_final = {};
};

// d loss / d wrt[i], each with the shape of wrt[i]. Nothing runs. Whether loss, or anything that it was made of, has
// been evaluated changes nothing: an array with a handle remembers how it was made until a parameter behind it is
// overwritten. Only values that were asked for are kept; the others are computed once more.
// Throws ArgumentError unless loss has one element and is floating; where it was built under NoGrad; where it does not
// depend on wrt, or on one of them (allow_unused); where something that it was made of has been overwritten since it
// was built, by an optimizer's step, assign() or mutable_host(). What comes out of an earlier step and is to be a
// constant from there on (the state of a recurrent layer) goes through stop_gradient().
std::vector<Array> gradients(const Array& loss, std::span<const Array> wrt, const GradientOptions& options = {});

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
