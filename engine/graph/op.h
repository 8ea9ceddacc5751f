// Op: what the engine must know about one kind of node - its name, what makes it another kernel, its traits, cost,
// launches and gradient. The class of an op lives in an unnamed namespace of its own .cpp under engine/ops; only its
// free function is visible.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/hash.h"
#include "graph/context.h"
#include "graph/node.h"
#include "graph/op_traits.h"
#include "samebytes/array.h"
#include "samebytes/error.h"

namespace samebytes::detail {

class Launch;

struct Cost {
  double flops = 0;
  double bytes = 0;
};

// What a result of an op looks like.
struct Result {
  Shape shape;
  Dtype dtype = Dtype::f32;
};

// What gradient() gets. dy[k] is an empty handle where the k-th result does not matter to the loss.
struct GradientRequest {
  std::span<const Array> dy;        // one per result
  std::span<const Array> src;       // the inputs
  std::span<const Array> dst;       // the results
  std::span<const bool> wanted;     // which inputs need a gradient; the others may stay empty handles
  std::span<const Scalar> scalars;  // of the node
};

class Op {
 public:
  Op() = default;
  explicit Op(OpTraits traits) : traits_(std::move(traits)) {}
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;
  virtual ~Op() = default;
  const OpTraits& traits() const { return traits_; }
  virtual std::string_view name() const = 0;  // "softmax"
  // Adds every attribute that changes kernels, arguments or results, and what names the objects that a host function
  // of launch() holds (a number that is never given twice, not an address); not the shapes, dtypes and numbers of
  // inputs, results and scalars, which are hashed anyway.
  virtual void hash(Hasher&) const {}
  virtual Cost cost(std::span<const Shape> src,
                    std::span<const Shape> dst) const;  // default: reads and writes all once
  // Records the launches of one node. Empty results are never launched.
  virtual void launch(Launch& run) const = 0;
  // The gradient with respect to each input, made of public ops: an array for each one that is wanted. Default: throws
  // ArgumentError "<name>: has no gradient".
  virtual std::vector<Array> gradient(const GradientRequest& request) const;

  // The result of `node`, which is of this op, plus `other`: one node, where it reads less than adding afterwards (how
  // gradients of a shared parameter meet); an empty handle where it does not.
  virtual Array added_to(const Node& node, const Array& other) const;

  // What must be evaluated wherever `node`, which is of this op and not run yet, is asked for; an empty handle where
  // there is nothing.
  virtual Array companion(const Node& node) const;

  // The op that makes the same results but overwrites nothing: it has neither the inputs that are state nor the results
  // that lie in them, which come last. Null where there is none: the results of a checkpointed node are kept then.
  virtual std::shared_ptr<const Op> without_state() const { return nullptr; }
  // True where the launch of `self`, a node of this op, can make all results of `later` as well (Launch::gradient):
  // a gradient of `self` that reads nothing but its upstream gradient (input 0) and what `self` reads and makes.
  virtual bool makes_gradient(const Node& /*self*/, const Node& /*later*/) const { return false; }

  std::uint64_t fingerprint() const;  // of type and attributes; computed once, by whichever thread asks first

 private:
  const OpTraits traits_{};
  mutable std::atomic<std::uint64_t> fingerprint_{0};  // one op is shared by engines and threads
};
using OpPtr = std::shared_ptr<const Op>;

// Makes a node with one result. Inputs of several engines, or empty handles, are an ArgumentError naming the op.
Array make_array(const OpPtr& op, const Shape& shape, Dtype dtype, std::span<const Array> inputs,
                 std::vector<Scalar> scalars = {});
// A node of several results.
std::vector<Array> make_arrays(const OpPtr& op, std::span<const Result> results, std::span<const Array> inputs,
                               std::vector<Scalar> scalars = {});
// The k-th result of such a node; nodes of the same result share its place.
Array result_of(const NodePtr& producer, int k);
// The same once more, of an op that is that of `node` or what it is without its state; a view, a result and a producer
// of several results too. Scalars, layer and device are those of `node`.
NodePtr repeat_node(const Node& node, const OpPtr& op, std::vector<Edge> inputs);
// A view: offset in elements and strides relative to the base of `a`, composed by the caller (engine/ops/view.cpp).
Array make_view(const OpPtr& op, const Array& a, const Shape& shape, std::int64_t offset, const Strides& strides);
// A leaf on storage of its own; not initialised.
Array make_leaf(const ContextPtr& context, const Shape& shape, Dtype dtype, Category category);
// A leaf that shows the beginning of `storage`.
Array make_leaf_on(const ContextPtr& context, const Shape& shape, Dtype dtype, Category category, StoragePtr storage);

template <class T, class... Args>
OpPtr make_op(Args&&... args) {
  return std::make_shared<const T>(std::forward<Args>(args)...);
}

// Throws ArgumentError("<op>: <need>, <name> is f32 [2, 3]") unless ok.
void require(bool ok, const char* op, const char* need, const Array& came, const char* name);
std::string describe(const Array& a);  // "f32 [2, 3]"

}  // namespace samebytes::detail
