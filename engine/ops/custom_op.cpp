// custom_op: the user's own OpenCL C as a node of the graph.
#include <algorithm>

#include "graph/launch.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

class Custom final : public Op {
 public:
  Custom(CustomOp op, std::size_t inputs) : op_(std::move(op)), inputs_(inputs) {}
  std::string_view name() const override { return op_.name; }
  void hash(Hasher& hasher) const override {
    hasher.add(std::string_view(op_.source));
    hasher.add(std::string_view(op_.entry));
    hasher.add(static_cast<std::uint64_t>(op_.elements_per_item));
  }

  void launch(Launch& run) const override {
    const std::int64_t n = run.dst_shape().size();
    const std::int64_t items = (n + op_.elements_per_item - 1) / op_.elements_per_item;
    KernelCall call = run.generated(op_.source, op_.entry, real_of(run.dst_dtype()), op_.name);
    for (std::size_t i = 0; i < inputs_; ++i) call.args(run.src(static_cast<int>(i)));
    call.args(run.dst(), static_cast<int>(n));
    for (std::size_t p = 0; p < run.node().scalars.size(); ++p) call.args(DynamicReal{static_cast<int>(p)});
    call.over_items(items);
  }

  std::vector<Array> gradient(const GradientRequest& g) const override {
    if (!op_.gradient) throw ArgumentError(op_.name + ": this custom op has no gradient; set CustomOp::gradient");
    std::vector<Array> dx = op_.gradient(g.dy[0], g.src, g.dst[0]);
    if (dx.size() != g.src.size())
      throw ArgumentError(op_.name + ": its gradient must give one array per input (" + std::to_string(g.src.size()) +
                          "), it gave " + std::to_string(dx.size()));
    return dx;
  }

 private:
  CustomOp op_;
  std::size_t inputs_;
};

}  // namespace
}  // namespace detail

Array custom_op(const CustomOp& op, const Inputs& inputs, const Shape& shape, Dtype dtype,
                std::span<const double> parameters) {
  if (op.name.empty() || op.entry.empty() || op.source.empty())
    throw ArgumentError("custom_op: needs a name, an entry and a source; name is \"" + op.name + "\", entry is \"" +
                        op.entry + "\"");
  if (inputs.empty()) throw ArgumentError(op.name + ": needs at least one input");
  if (op.elements_per_item < 1)
    throw ArgumentError(op.name + ": elements_per_item must be 1 or more, it is " +
                        std::to_string(op.elements_per_item));
  const auto is_narrow = [](const Array& a) { return a.defined() && detail::is_16_bit(a.dtype()); };
  if (detail::is_16_bit(dtype) || std::any_of(inputs.begin(), inputs.end(), is_narrow)) {  // its kernel reads `real`
    std::vector<Array> wide(inputs.begin(), inputs.end());
    for (Array& a : wide)
      if (is_narrow(a)) a = astype(a, f32);
    return astype(custom_op(op, wide, shape, detail::is_16_bit(dtype) ? f32 : dtype, parameters), dtype);
  }
  std::vector<detail::Scalar> scalars(parameters.begin(), parameters.end());
  return detail::make_array(detail::make_op<detail::Custom>(op, inputs.size()), shape, dtype, inputs,
                            std::move(scalars));
}

}  // namespace samebytes
