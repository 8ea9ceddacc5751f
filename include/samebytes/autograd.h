// Reverse-mode differentiation: the gradient of a scalar is more nodes of the same graph, planned and fused like the
// rest.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/array.h"

namespace samebytes {

// Called with each gradient and its index in wrt as soon as the gradient is complete, in the order of the backward
// pass: the last layer first. Nodes that it builds run at that point, before the rest of the backward pass.
using FinalGradient = std::function<void(std::size_t index, const Array& gradient)>;

struct GradientOptions {
  bool allow_unused = false;  // zeros instead of an error for arrays that loss does not depend on
  FinalGradient on_final = {};
};

// d loss / d wrt[i], each with the shape of wrt[i]. Runs nothing. It does not matter whether loss or any of its inputs
// has been evaluated: an array with a handle remembers how it was made until a parameter behind it is overwritten. Only
// values that were evaluated are kept; the others are recomputed. Throws ArgumentError unless loss has one element and
// is floating; if loss was built under NoGrad; if loss does not depend on an array of wrt (see allow_unused); if an
// input of loss has been overwritten since, by an optimizer's step, assign() or mutable_host(). Pass a value of an
// earlier step that shall be a constant from now on (the state of a recurrent layer) through stop_gradient().
// The list is const, as those of a module are: gradients(loss, wrt)[0] = x would change nothing and does not compile.
const std::vector<Array> gradients(const Array& loss, std::span<const Array> wrt, const GradientOptions& options = {});
inline const std::vector<Array> gradients(const Array& loss, std::initializer_list<Array> wrt,
                                          const GradientOptions& options = {}) {
  return gradients(loss, std::span<const Array>(wrt.begin(), wrt.size()), options);
}

// The vector-Jacobian product: sum over the elements of y of upstream * dy / d wrt[i]. y may have any shape, upstream
// has it too; the rest is as above.
const std::vector<Array> gradients(const Array& y, std::span<const Array> wrt, const Array& upstream,
                                   const GradientOptions& options = {});
inline const std::vector<Array> gradients(const Array& y, std::initializer_list<Array> wrt, const Array& upstream,
                                          const GradientOptions& options = {}) {
  return gradients(y, std::span<const Array>(wrt.begin(), wrt.size()), upstream, options);
}

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
Array stop_gradient(const Input& x);

// An op from the user's own OpenCL C. The source defines the kernel
//   __kernel void <entry>(ARRAY(const real, src0), ..., ARRAY(real, dst), const int n, const int s0, ..., const real
//       p0, ...)
// which runs with one work-item per `elements_per_item` of the n elements of dst; the arguments are dense. `gradient`
// gets dy, the inputs and the output and returns one array per input, of its shape; if it is empty, the op has no
// gradient. What the source may use besides OpenCL C 1.2 (common.clh, which is included):
//   real, REAL_C(0.5)           double if an array of the call is f64, else float, and a constant of it; floating
//                               arrays of another type are converted before and after
//   ARRAY(const real, x)        a parameter for an array of that element type: real, int (i32), long (i64), uchar (u8
//                               and bool)
//   START(x)                    first statement for each array: moves x to its first element
//   SB_BEGIN(n), SB_END(n)      the elements of n that this work-item handles, as long: i from begin to end - 1
//   FMA(a, b, c)                a * b + c, fused where the device does that fast
//   VW, vreal, VLOAD(p), VSTORE(v, p)   the width of the device's vectors, a vector, its load and store; VW may be 1
//   SAMEBYTES_CPU, SAMEBYTES_GPU, SAMEBYTES_F64   defined for the kind of the device, and where real is double
struct CustomOp {
  std::string name;
  std::string entry;
  std::string source;
  int elements_per_item = 1;
  std::function<std::vector<Array>(const Array& dy, std::span<const Array> inputs, const Array& y)> gradient = {};
  std::vector<std::int64_t> sizes = {};  // s0, ...: sizes and other integers; another value is another plan
};
// The result has `dtype`; without one it has the widest floating type of the inputs, f32 if none is floating.
// Throws ArgumentError if `inputs` is empty or mixes engines, and if the kernel's parameters are not those above: it
// names the kernel and the parameter. The first run throws BuildError with name, defines and
// log if the source does not build.
Array custom_op(const CustomOp& op, const Inputs& inputs, const Shape& shape, std::optional<Dtype> dtype = {},
                std::span<const double> parameters = {});

}  // namespace samebytes
