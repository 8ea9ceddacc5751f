// Attention with grouped heads, masks and caches, rotary positions, and caches that are written in place.
#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/registry.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

// [N, H, T, D], or [N, T, H D] with so many heads -> [N, T, H, D].
Array heads_last(const Call& call, std::size_t input, const std::string& heads) {
  const Array a = call.floating(input);
  if (a.shape().rank() == 4) return transpose(a, {0, 2, 1, 3});
  const std::int64_t n = call.integer(heads, 0);
  if (a.shape().rank() != 3 || n < 1 || a.shape()[2] % n != 0)
    call.refuse("input " + std::to_string(input) + " is " + a.shape().to_string() +
                ", expected [N, H, T, D], or [N, T, H D] with a number of heads that divides the last axis");
  return reshape(a, {a.shape()[0], a.shape()[1], n, a.shape()[2] / n});
}
Array heads_second(const Array& a) { return transpose(a, {0, 2, 1, 3}); }

// Bool or added to the scores; what it lacks of the keys is hidden.
Array mask_of(const Call& call, std::int64_t keys) {
  if (!call.has(3)) return {};
  Array mask = call.array(3);
  const int rank = mask.shape().rank();
  if (rank < 1) call.refuse("the mask is one number");
  const std::int64_t missing = keys - mask.shape()[rank - 1];
  if (missing <= 0 || mask.shape()[rank - 1] == 1) return mask;
  std::vector<PadWidth> widths(static_cast<std::size_t>(rank));
  widths.back().after = missing;
  const double hidden = mask.dtype() == Dtype::bool_ ? 0.0 : -std::numeric_limits<double>::infinity();
  return pad(mask, widths, PadMode::constant, hidden);
}

// Bool [T, S] or [N, 1, T, S]: which keys lie in the window around a query, whose place is its number plus the offset.
Array window_of(const Call& call, std::int64_t queries, std::int64_t keys, const AttentionOptions& options,
                const Array& offsets) {
  const std::int64_t left = call.integer("left_window_size", -1), right = call.integer("right_window_size", -1);
  if (left < 0 && right < 0) return {};
  const Array columns = arange(0, double(keys), 1, i32),
              rows = reshape(arange(0, double(queries), 1, i32), {queries, 1});
  const Array places = offsets.defined() ? rows + reshape(offsets, {offsets.size(), 1, 1, 1})
                                         : rows + full(Shape{}, static_cast<double>(options.offset.value_or(0)), i32);
  const auto number = [](std::int64_t value) { return full(Shape{}, static_cast<double>(value), i32); };
  Array seen;
  if (left >= 0) seen = greater_equal(columns, places - number(left));
  if (right >= 0) {
    const Array before = less_equal(columns, places + number(right));
    seen = seen.defined() ? logical_and(seen, before) : before;
  }
  return seen;
}

// A mask, bool or added, that hides what `seen` does, too.
Array narrowed(const Array& mask, const Array& seen) {
  if (!seen.defined()) return mask;
  if (!mask.defined()) return seen;
  if (mask.dtype() == Dtype::bool_) return logical_and(mask, seen);
  return where(seen, mask, full(Shape{}, -std::numeric_limits<double>::infinity(), mask.dtype()));
}

// The scores in their stages, q [N, T, H, D], k [N, S, G, D], v [N, S, G, E] -> [N, H, T, E].
struct Stages {
  Array scores, capped, masked, shares, y;
};
Stages stages(const Call& call, const Array& q, const Array& k, const Array& v, const AttentionOptions& options) {
  const std::int64_t queries = q.shape()[1], keys = k.shape()[1], repeats = q.shape()[2] / k.shape()[2];
  const double hidden = -std::numeric_limits<double>::infinity();
  const auto spread = [&](const Array& a) {
    return repeats == 1 ? heads_second(a) : repeat_interleave(heads_second(a), repeats, 1);
  };
  Stages at;
  at.scores = matmul(heads_second(q), transpose(spread(k))) * options.scale.value_or(1.0);
  at.capped = options.soft_cap > 0 ? tanh(at.scores / options.soft_cap) * options.soft_cap : at.scores;
  at.masked = at.capped;
  if (options.mask.defined())
    at.masked = options.mask.dtype() == Dtype::bool_ ? masked_fill(at.masked, logical_not(options.mask), hidden)
                                                     : at.masked + astype(options.mask, q.dtype());
  if (options.causal) {
    const Array last =
        reshape(arange(0, double(queries), 1, i32), {queries, 1}) +
        (options.offsets.defined() ? reshape(options.offsets, {options.offsets.size(), 1, 1, 1})
                                   : full(Shape{}, static_cast<double>(options.offset.value_or(0)), i32));
    at.masked = masked_fill(at.masked, greater(arange(0, double(keys), 1, i32), last), hidden);
  }
  if (options.lengths.defined()) {
    const Array ends = reshape(options.lengths, {options.lengths.size(), 1, 1, 1});
    at.masked = masked_fill(at.masked, greater_equal(arange(0, double(keys), 1, i32), ends), hidden);
  }
  const Type precision = call.element_type("softmax_precision", Type::none);
  // A query without a key has no shares.
  const Array zero = full(Shape{}, 0.0, q.dtype());
  const Array is_blind = less_equal(max(at.masked, {3}, true), full(Shape{}, hidden, q.dtype()));
  const Array some = where(is_blind, zero, at.masked);
  const Array wide = precision == Type::none ? some : astype(some, dtype_of(precision));
  at.shares = where(is_blind, zero, astype(softmax(wide), q.dtype()));
  at.y = matmul(at.shares, spread(v));
  return at;
}

Outputs attention(const Call& call) {
  const bool is_flat = call.rank() == 3;
  const Array q = heads_last(call, 0, "q_num_heads");
  Array k = heads_last(call, 1, "kv_num_heads"), v = heads_last(call, 2, "kv_num_heads");
  AttentionOptions options;
  std::int64_t past_keys = 0;
  if (call.has(4) != call.has(5)) call.refuse("past keys and values come together");
  if (call.has(4)) {
    const Array past = heads_second(call.floating(4));
    past_keys = past.shape()[1];
    k = concat({past, k}, 1);
    v = concat({heads_second(call.floating(5)), v}, 1);
  }
  if (k.shape()[2] < 1 || q.shape()[2] % k.shape()[2] != 0)
    call.refuse("the heads of the queries are no multiple of those of the keys");
  options.scale = call.real("scale", 1.0 / std::sqrt(static_cast<double>(q.shape()[3])));
  options.causal = call.integer("is_causal", 0) != 0;
  options.soft_cap = call.real("softcap", 0.0);
  if (call.has(6)) options.lengths = call.array(6);
  // With a cache of its own each sample's queries are its last positions.
  Array offsets;
  if (options.lengths.defined() && past_keys == 0)
    offsets = options.lengths - full(Shape{}, static_cast<double>(q.shape()[1]), i32);
  options.offset = past_keys;
  options.mask = narrowed(mask_of(call, k.shape()[1]), window_of(call, q.shape()[1], k.shape()[1], options, offsets));
  if (options.causal && offsets.defined()) options.offsets = offsets;
  if (!options.causal || offsets.defined()) options.offset.reset();
  const Type precision = call.element_type("softmax_precision", Type::none);
  const bool is_staged = call.outputs > 3 || precision == Type::f64 || precision == Type::f16;
  Outputs result(1);
  if (is_staged) {
    const Stages at = stages(call, q, k, v, options);
    const std::int64_t stage = call.integer("qk_matmul_output_mode", 0);
    result = {item_of(is_flat ? heads_second(at.y) : at.y),
              {},
              {},
              item_of(stage == 1   ? at.capped
                      : stage == 2 ? at.masked
                      : stage == 3 ? at.shares
                                   : at.scores)};
  } else {
    const Array mask = options.mask;
    if (mask.defined() && mask.dtype() != Dtype::bool_) options.mask = astype(mask, q.dtype());
    const Array y = scaled_dot_product_attention(q, k, v, options);
    result = {item_of(is_flat ? y : heads_second(y)), {}, {}};
  }
  if (is_flat) {
    const Array y = result[0].array;
    result[0] = item_of(reshape(y, {y.shape()[0], y.shape()[1], y.shape()[2] * y.shape()[3]}));
  }
  result[1] = item_of(heads_second(k));
  result[2] = item_of(heads_second(v));
  return result;
}

// Turns the pairs of the first `rotary_embedding_dim` values of each head by the angles of the caches.
Outputs rotated(const Call& call) {
  const bool is_flat = call.rank() == 3, is_interleaved = call.integer("interleaved", 0) != 0;
  const Array x = heads_last(call, 0, "num_heads");
  const std::int64_t depth = x.shape()[3], asked = call.integer("rotary_embedding_dim", 0);
  const std::int64_t turned = asked == 0 ? depth : asked;
  if (turned < 2 || turned % 2 != 0 || turned > depth) call.refuse("rotary_embedding_dim is odd or too large");
  const auto cached = [&](std::size_t input) {
    const Array cache = call.floating(input);
    const Array angles = call.has(3) ? take(cache, call.array(3), 0) : cache;
    if (angles.shape().rank() != 3 || angles.shape()[2] != turned / 2)
      call.refuse("a cache is " + angles.shape().to_string() + ", expected [N, T, " + std::to_string(turned / 2) + "]");
    return unsqueeze(angles, 2);
  };
  const Array cosine = cached(1), sine = cached(2);
  const auto part = [&](std::int64_t which) {
    return is_interleaved ? slice(x, 3, which, turned, 2) : slice(x, 3, which * turned / 2, (which + 1) * turned / 2);
  };
  const Array first = part(0), second = part(1);
  const std::vector<Array> pair{first * cosine - second * sine, first * sine + second * cosine};
  Shape shape = x.shape();
  shape[3] = turned;
  Array y = is_interleaved ? reshape(stack(pair, 4), shape) : concat(pair, 3);
  if (turned < depth) y = concat({y, slice(x, 3, turned, depth)}, 3);
  return {item_of(is_flat ? reshape(y, call.array().shape()) : heads_second(y))};
}

// A cache [N, ..., S, ...] with new rows put at each sample's place of the axis, around its end if it is circular.
Outputs cached(const Call& call) {
  const Array past = call.floating(0), fresh = call.floating(1);
  const int axis = call.axis(call.integer("axis", -2), call.rank());
  if (axis == 0 || fresh.shape().rank() != past.shape().rank())
    call.refuse("expected a batch, and updates of one rank");
  const std::int64_t samples = past.shape()[0], size = past.shape()[axis], rows = fresh.shape()[axis];
  const bool is_circular = call.text("mode", "linear") == "circular";
  auto starts = call.has(2) ? ints_of(call.at(2)) : std::vector<std::int64_t>(std::size_t(list_count({samples})), 0);
  for (const std::int64_t start : starts)
    if (start < 0 || start > size) call.refuse("an update lies outside of the cache");
  if (past.size() == 0) return {call.at(0)};
  list_count({samples, size});
  if (samples < 1 || std::ssize(starts) != samples || rows > size) call.refuse("the updates do not fit the cache");
  std::vector<Array> result;
  const bool is_equal = std::equal(starts.begin() + 1, starts.end(), starts.begin());
  for (std::int64_t sample = 0; sample < (is_equal ? 1 : samples); ++sample) {
    std::vector<std::int64_t> from(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i) from.at(static_cast<std::size_t>(i)) = i;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t place = starts.at(static_cast<std::size_t>(sample)) + i;
      if (place < 0 || (place >= size && !is_circular)) call.refuse("an update lies outside of the cache");
      from.at(static_cast<std::size_t>(place % size)) = size + i;
    }
    const auto own = [&](const Array& a) { return is_equal ? a : slice(a, 0, sample, sample + 1); };
    result.push_back(take(concat({own(past), own(fresh)}, axis), plain(ints_item(from, {size})), axis));
  }
  return {item_of(result.size() == 1 ? result[0] : concat(result, 0))};
}

}  // namespace

void add_attention(Registry& registry) {
  registry.insert({{"Attention", attention}, {"RotaryEmbedding", rotated}, {"TensorScatter", cached}});
}

}  // namespace samebytes::onnx
