// Rotary positions: one pass over the array; the gradient turns back by the same angles. Kernel: cl/*/rotary.cl.
#include "samebytes/ops/rotary.h"

#include <cmath>
#include <utility>
#include <vector>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "graph/written.h"
#include "ops/dtypes.h"
#include "ops/sizes.h"
#include "samebytes/ops.h"
#include "samebytes/ops/attention.h"

namespace samebytes {
namespace detail {
namespace {

constexpr int kRotaryItems = 64;  // of a group in the gpu personality

struct RotaryKind {
  bool interleaved = false;
  std::int64_t heads = 0;
  double base = 0;   // without a table
  double scale = 1;  // of the cosines and sines
  double sign = 1;   // -1 turns back
};

Array turn(const Array& x, const Array& table, const RotaryKind& kind, std::uint64_t offset);

// Inputs: x and, if there is one, the table of frequencies. Scalar: the offset.
class Rotary final : public Op, public Written {
 public:
  explicit Rotary(const RotaryKind& kind) : Op({.takes_strides = {0}}), kind_(kind) {}
  std::string_view name() const override { return "rotary"; }
  void hash(Hasher& hasher) const override {
    hasher.add(static_cast<std::uint64_t>(kind_.interleaved) << 1 | static_cast<std::uint64_t>(kind_.sign < 0));
    hasher.add(static_cast<std::uint64_t>(kind_.heads));
    hasher.add(kind_.base);
    hasher.add(kind_.scale);
  }
  void launch(Launch& run) const override {
    const Shape& shape = run.dst_shape();
    const Strides strides = run.src_strides(0);
    const bool has_table = run.src_count() > 1;
    const std::int64_t pairs = has_table ? run.src_shape(1)[0] : shape[3] / 2;
    const double step = has_table ? 0 : 2.0 / static_cast<double>(shape[3]) * std::log2(kind_.base);
    run.kernel("rotary", run.dst_dtype())
        .args(run.src(0), has_table ? run.src(1) : Launch::none(), run.dst(), strides[0], strides[1], strides[2],
              static_cast<int>(shape[2]), static_cast<int>(kind_.heads), static_cast<int>(shape[3]),
              static_cast<int>(pairs), int{kind_.interleaved}, int{has_table}, step, kind_.scale,
              kind_.sign * kind_.scale, DynamicBits{0})
        .over_tiles(shape[1], shape[0], 1, kRotaryItems, 1);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    std::vector<Array> result(request.src.size());
    RotaryKind back = kind_;
    back.sign = -back.sign;
    result[0] = turn(request.dy[0], request.src.size() > 1 ? request.src[1] : Array(), back, request.scalars[0].bits);
    return result;
  }
  void write(NodeWriter& w) const override {
    const std::int64_t batch = w.result()[0], tokens = w.result()[1], size = w.result()[3];
    const std::int64_t pairs = w.count() > 1 ? w.shape(1)[0] : size / 2;
    const std::int64_t heads = w.result()[2], turned = kind_.heads;
    const auto part = [&](const NodeWriter::Name& value, std::int64_t axis, std::int64_t from, std::int64_t to) {
      return w.put("Slice", {value, w.ints({from}), w.ints({to}), w.ints({axis})});
    };
    const bool is_apart = kind_.interleaved;  // pairs are neighbours: an axis of their own tells them apart
    const Shape table = is_apart ? Shape{tokens, 1, pairs, 1} : Shape{tokens, 1, pairs};
    const auto [cosine, sine] = write_table(w, table, tokens, pairs);
    const auto all = turned == heads ? w.in(0) : part(w.in(0), 2, 0, turned);
    auto x = 2 * pairs == size ? all : part(all, 3, 0, 2 * pairs);
    if (is_apart) x = w.reshaped(x, {batch, tokens, turned, pairs, 2});
    const std::int64_t axis = is_apart ? 4 : 3, half = is_apart ? 1 : pairs;
    const auto a = part(x, axis, 0, half), b = part(x, axis, half, 2 * half);
    const auto first = w.put("Sub", {w.put("Mul", {a, cosine}), w.put("Mul", {b, sine})});
    const auto second = w.put("Add", {w.put("Mul", {b, cosine}), w.put("Mul", {a, sine})});
    auto y = w.put("Concat", {first, second}, {{"axis", axis}});
    if (is_apart) y = w.reshaped(y, {batch, tokens, turned, 2 * pairs});
    if (2 * pairs < size) y = w.put("Concat", {y, part(all, 3, 2 * pairs, size)}, {{"axis", std::int64_t{3}}});
    if (turned < heads) y = w.put("Concat", {y, part(w.in(0), 2, turned, heads)}, {{"axis", std::int64_t{2}}});
    w.give(y);
  }

 private:
  using Table = std::pair<NodeWriter::Name, NodeWriter::Name>;  // cosines and sines
  Table write_table(NodeWriter& w, const Shape& table, std::int64_t tokens, std::int64_t pairs) const {
    std::vector<double> places, cosines, sines;
    for (std::int64_t t = 0; t < tokens; ++t) {
      places.push_back(static_cast<double>(t) + static_cast<double>(w.scalar(0).bits));
      for (std::int64_t i = 0; i < pairs; ++i) {
        const double angle = places.back() * std::pow(kind_.base, -static_cast<double>(i) / static_cast<double>(pairs));
        cosines.push_back(kind_.scale * std::cos(angle));
        sines.push_back(kind_.sign * kind_.scale * std::sin(angle));
      }
    }
    const Dtype dtype = w.result_dtype();
    if (w.count() == 1) return {w.numbers(cosines, table, dtype), w.numbers(sines, table, dtype)};
    const auto angle = w.put("Mul", {w.numbers(places, Shape{tokens, 1}, w.dtype(1)), w.reshaped(w.in(1), {1, pairs})});
    const auto scaled = [&](const char* function, double scale) {
      const auto value = w.put("Mul", {w.put(function, {angle}), w.number(scale, w.dtype(1))});
      return w.cast(w.reshaped(value, table), w.dtype(1), dtype);
    };
    return {scaled("Cos", kind_.scale), scaled("Sin", kind_.sign * kind_.scale)};
  }

  RotaryKind kind_;
};

Array turn(const Array& x, const Array& table, const RotaryKind& kind, std::uint64_t offset) {
  const Node& node = *x.node();
  std::vector<Array> inputs{node.is_view && node.strides[3] != 1 ? contiguous(x) : x};
  if (table.defined()) inputs.push_back(table);
  return make_array(make_op<Rotary>(kind), x.shape(), x.dtype(), inputs, {offset});
}

void require_rotary(const Array& x, std::int64_t heads, std::int64_t offset) {
  require(x.defined() && is_floating(x.dtype()) && x.shape().rank() == 4 && x.shape()[3] % 2 == 0, "rotary",
          "x must be floating [N, T, H, D] with D even", x, "x");
  if (heads < 0 || heads > x.shape()[2])
    throw ArgumentError("rotary: heads must be between 0 and those of x, got " + std::to_string(heads) + ", x is " +
                        describe(x));
  if (offset < 0) throw ArgumentError("rotary: offset must be 0 or more, got " + std::to_string(offset));
  constexpr std::int64_t most = std::int64_t{1} << 53;  // beyond, not even f64 tells neighbours apart
  if (offset > most) throw ArgumentError("rotary: offset must be at most 2^53, got " + std::to_string(offset));
  require_ints("rotary", "heads and values of a head", {x.shape()[2], x.shape()[3]});
}

}  // namespace
}  // namespace detail

const detail::CastRow kRotaryCast{"rotary", CastRule::as_given};
Array rotary(const Input& x, const RotaryOptions& options) {
  if (const detail::Casts cast(kRotaryCast); cast) return rotary(cast(x), options);
  detail::require_rotary(x, options.heads, options.offset);
  if (!(std::isfinite(options.base) && options.base > 0))
    throw ArgumentError("rotary: base must be above 0, got " + std::to_string(options.base));
  if (x.size() == 0) return x;
  return detail::turn(x, {},
                      {.interleaved = options.interleaved,
                       .heads = options.heads == 0 ? x.shape()[2] : options.heads,
                       .base = options.base},
                      static_cast<std::uint64_t>(options.offset));
}

Array rotary(const Input& x, const Input& frequencies, const RotaryTableOptions& options) {
  if (const detail::Casts cast(kRotaryCast); cast) return rotary(cast(x), frequencies, options);
  detail::require_rotary(x, options.heads, options.offset);
  const bool fits = frequencies.defined() && frequencies.dtype() == detail::real_of(x.dtype()) &&
                    frequencies.shape().rank() == 1 && frequencies.size() >= 1 &&
                    2 * frequencies.size() <= x.shape()[3];
  const std::string need = "x " + detail::describe(x) + " needs 1 to " + std::to_string(x.shape()[3] / 2) +
                           " frequencies of " + std::string(name_of(detail::real_of(x.dtype())));
  detail::require(fits, "rotary", need.c_str(), frequencies, "frequencies");
  if (!std::isfinite(options.scale))
    throw ArgumentError("rotary: scale must be finite, got " + std::to_string(options.scale));
  if (x.size() == 0) return x;
  return detail::turn(x, frequencies,
                      {.interleaved = options.interleaved,
                       .heads = options.heads == 0 ? x.shape()[2] : options.heads,
                       .scale = options.scale},
                      static_cast<std::uint64_t>(options.offset));
}

}  // namespace samebytes
