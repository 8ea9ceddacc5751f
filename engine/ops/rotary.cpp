// Rotary positions: one pass over the array; the gradient turns back by the same angles. Kernel: cl/*/rotary.cl.
#include <cmath>
#include <vector>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "graph/written.h"
#include "samebytes/ops.h"
#include "samebytes/ops/attention.h"

namespace samebytes {
namespace detail {
namespace {

constexpr int kRotaryItems = 64;  // of a group in the gpu personality

Array turn(const Array& x, const RotaryOptions& options, double sign);

// Scalar: the offset.
class Rotary final : public Op, public Written {
 public:
  Rotary(const RotaryOptions& options, double sign)
      : Op({.takes_strides = InputSet::all()}), options_(options), sign_(sign) {}
  std::string_view name() const override { return "rotary"; }
  void hash(Hasher& hasher) const override {
    hasher.add(static_cast<std::uint64_t>(options_.interleaved) << 1 | static_cast<std::uint64_t>(sign_ < 0));
    hasher.add(static_cast<std::uint64_t>(options_.heads));
    hasher.add(options_.base);
  }
  void launch(Launch& run) const override {
    const Shape& shape = run.dst_shape();
    const Strides strides = run.src_strides(0);
    const double step = 2.0 / static_cast<double>(shape[3]) * std::log2(options_.base);
    run.kernel("rotary", run.dst_dtype())
        .args(run.src(0), run.dst(), strides[0], strides[1], strides[2], static_cast<int>(shape[2]),
              static_cast<int>(options_.heads), static_cast<int>(shape[3]), int{options_.interleaved}, step, sign_,
              DynamicBits{0})
        .over_tiles(shape[1], shape[0], 1, kRotaryItems, 1);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    RotaryOptions options = options_;
    options.offset = static_cast<std::int64_t>(request.scalars[0].bits);
    return {turn(request.dy[0], options, -sign_)};
  }
  void write(NodeWriter& w) const override {
    const std::int64_t batch = w.result()[0], tokens = w.result()[1], pairs = w.result()[3] / 2;
    const std::int64_t heads = w.result()[2], turned = options_.heads;
    const auto part = [&](const NodeWriter::Name& value, std::int64_t axis, std::int64_t from, std::int64_t to) {
      return w.put("Slice", {value, w.ints({from}), w.ints({to}), w.ints({axis})});
    };
    std::vector<double> cosines, sines;
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int64_t i = 0; i < pairs; ++i) {
        const double place = static_cast<double>(t) + static_cast<double>(w.scalar(0).bits);
        const double angle = place * std::pow(options_.base, -static_cast<double>(i) / static_cast<double>(pairs));
        cosines.push_back(std::cos(angle));
        sines.push_back(sign_ * std::sin(angle));
      }
    const bool is_apart = options_.interleaved;  // pairs are neighbours: an axis of their own tells them apart
    const Shape table = is_apart ? Shape{tokens, 1, pairs, 1} : Shape{tokens, 1, pairs};
    const auto cosine = w.numbers(cosines, table, w.result_dtype()), sine = w.numbers(sines, table, w.result_dtype());
    auto x = turned == heads ? w.in(0) : part(w.in(0), 2, 0, turned);
    if (is_apart) x = w.reshaped(x, {batch, tokens, turned, pairs, 2});
    const std::int64_t axis = is_apart ? 4 : 3, half = is_apart ? 1 : pairs;
    const auto a = part(x, axis, 0, half), b = part(x, axis, half, 2 * half);
    const auto first = w.put("Sub", {w.put("Mul", {a, cosine}), w.put("Mul", {b, sine})});
    const auto second = w.put("Add", {w.put("Mul", {b, cosine}), w.put("Mul", {a, sine})});
    auto y = w.put("Concat", {first, second}, {{"axis", axis}});
    if (is_apart) y = w.reshaped(y, {batch, tokens, turned, 2 * pairs});
    if (turned < heads) y = w.put("Concat", {y, part(w.in(0), 2, turned, heads)}, {{"axis", std::int64_t{2}}});
    w.give(y);
  }

 private:
  RotaryOptions options_;
  double sign_;
};

Array turn(const Array& x, const RotaryOptions& options, double sign) {
  const Node& node = *x.node();
  const Array rows = node.is_view && node.strides[3] != 1 ? contiguous(x) : x;
  return make_array(make_op<Rotary>(options, sign), x.shape(), x.dtype(), std::span<const Array>(&rows, 1),
                    {static_cast<std::uint64_t>(options.offset)});
}

}  // namespace
}  // namespace detail

const detail::CastRow kRotaryCast{"rotary", CastRule::as_given};
Array rotary(const Input& x, const RotaryOptions& options) {
  if (const detail::Casts cast(kRotaryCast); cast) return rotary(cast(x), options);
  using detail::require;
  require(x.defined() && is_floating(x.dtype()) && x.shape().rank() == 4 && x.shape()[3] % 2 == 0, "rotary",
          "x must be floating [N, T, H, D] with D even", x, "x");
  if (options.heads < 0 || options.heads > x.shape()[2])
    throw ArgumentError("rotary: heads must be between 0 and those of x, got " + std::to_string(options.heads) +
                        ", x is " + detail::describe(x));
  if (!(std::isfinite(options.base) && options.base > 0))
    throw ArgumentError("rotary: base must be above 0, got " + std::to_string(options.base));
  if (options.offset < 0)
    throw ArgumentError("rotary: offset must be 0 or more, got " + std::to_string(options.offset));
  if (x.size() == 0) return x;
  RotaryOptions all = options;
  if (all.heads == 0) all.heads = x.shape()[2];
  return detail::turn(x, all, 1);
}

}  // namespace samebytes
