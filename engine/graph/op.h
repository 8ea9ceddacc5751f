// Op: what the engine must know about one kind of node: its name, the attributes that change its kernel, its traits,
// cost, launches and gradient. The class of an op lives in an unnamed namespace of its own .cpp under engine/ops; only
// its free function is visible.
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

// The shape and dtype of a result of an op.
struct Result {
  Shape shape;
  Dtype dtype = Dtype::f32;
};

// The arguments of gradient(). dy[k] is an empty handle if the loss does not depend on the k-th result.
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
  // Adds every attribute that changes kernels, arguments or results, and a unique number (never reused, not an address)
  // for each object that a host function of launch() holds. Shapes, dtypes and counts of inputs, results and scalars
  // are hashed anyway.
  virtual void hash(Hasher&) const {}
  virtual Cost cost(std::span<const Shape> src,
                    std::span<const Shape> dst) const;  // default: reads and writes everything once
  // Records the launches of one node. Not called for empty results.
  virtual void launch(Launch& run) const = 0;
  // The gradient with respect to each wanted input, built from public ops. Default: throws ArgumentError "<name>: has
  // no gradient".
  virtual std::vector<Array> gradient(const GradientRequest& request) const;

  // The result of `node`, which has this op, plus `other` as one node, if that reads less than a separate sum
  // (gradients of a shared parameter meet this way); otherwise an empty handle.
  virtual Array added_to(const Node& node, const Array& other) const;

  // What must be evaluated together with `node`, which has this op and has not run yet; an empty handle if nothing
  // must.
  virtual Array companion(const Node& node) const;

  // The op that computes the same results but overwrites nothing: it has neither the inputs that are state nor the
  // results that lie in them, which come last. Null if there is none: the results of a checkpointed node are kept then.
  virtual std::shared_ptr<const Op> without_state() const { return nullptr; }
  // True if the launch of `self`, a node with this op, can compute all results of `later` as well (Launch::gradient): a
  // gradient of `self` that reads only its upstream gradient (input 0) and what `self` reads and computes.
  virtual bool makes_gradient(const Node& /*self*/, const Node& /*later*/) const { return false; }

  // For a graph that runs again over other inputs while its weights stay (graph/recording.h): the result of the node of
  // `run`, which has this op and one result, built anew of what follows from its constant inputs alone, which is
  // computed once, and of the other inputs. An empty handle if that gains nothing.
  virtual Array settled(const Launch& run, std::span<const bool> is_constant) const;

  std::uint64_t fingerprint() const;  // of type and attributes; the first thread that asks computes it

 private:
  const OpTraits traits_{};
  mutable std::atomic<std::uint64_t> fingerprint_{0};  // engines and threads share an op
};
using OpPtr = std::shared_ptr<const Op>;

// Makes a node with one result. Throws ArgumentError with the op's name for empty handles or inputs of several engines.
Array make_array(const OpPtr& op, const Shape& shape, Dtype dtype, std::span<const Array> inputs,
                 std::vector<Scalar> scalars = {});
// Makes a node with several results.
std::vector<Array> make_arrays(const OpPtr& op, std::span<const Result> results, std::span<const Array> inputs,
                               std::vector<Scalar> scalars = {});
// The k-th result of such a node; nodes of the same result have the same place.
Array result_of(const NodePtr& producer, int k);
// Builds `node` again with `op`, which is its op or that op without state; handles views, results, and producers of
// several results. Keeps scalars, layer and device of `node`.
NodePtr repeat_node(const Node& node, const OpPtr& op, std::vector<Edge> inputs);
// A view: offset in elements and strides relative to the base of `a`, composed by the caller (engine/ops/view.cpp).
Array make_view(const OpPtr& op, const Array& a, const Shape& shape, std::int64_t offset, const Strides& strides);
// A leaf with its own storage; not initialised.
Array make_leaf(const ContextPtr& context, const Shape& shape, Dtype dtype, Category category);
// A leaf over the beginning of `storage`.
Array make_leaf_on(const ContextPtr& context, const Shape& shape, Dtype dtype, Category category, StoragePtr storage);

template <class T, class... Args>
OpPtr make_op(Args&&... args) {
  return std::make_shared<const T>(std::forward<Args>(args)...);
}

// Throws ArgumentError("<op>: <need>, <name> is f32 [2, 3]") unless ok.
void require(bool ok, const char* op, const char* need, const Array& came, const char* name);
std::string describe(const Array& a);  // "f32 [2, 3]"

}  // namespace samebytes::detail
