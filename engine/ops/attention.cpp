// Scaled dot-product attention, fused forward and backward (Dao et al. 2022). Kernels: cl/*/attention.cl. Forward is
// one launch that keeps the log-sum-exp of each row; backward is two, the first of which also makes the row sums of dy
// * y. Over 400 lines because the fused op, its gradients and the form that stores the scores share their rules.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "graph/written.h"
#include "ops/dtypes.h"
#include "ops/indexing.h"
#include "ops/sizes.h"
#include "samebytes/ops.h"
#include "samebytes/ops/attention.h"
#include "shared/attention.h"

namespace samebytes {
namespace detail {
namespace {

constexpr int kAttentionItems = 8;  // x 8 work-items of a group in the gpu personality

struct AttentionKind {
  bool packed = false;  // one input holds q, k and v
  bool causal = false;
  bool has_mask = false;
  bool has_lengths = false;
  std::int64_t heads = 0, kv_heads = 0;
  double scale = 1;

  int arrays() const { return packed ? 1 : 3; }
  int mask_input() const { return arrays(); }
  int lengths_input() const { return arrays() + int{has_mask}; }
  int given() const { return lengths_input() + int{has_lengths}; }  // inputs
  int flags() const {
    return (causal ? detail::ATTENTION_CAUSAL : 0) | (has_lengths ? detail::ATTENTION_LENGTHS : 0) |
           (has_mask ? detail::ATTENTION_MASK : 0);
  }
  void hash(Hasher& hasher) const {
    hasher.add(static_cast<std::uint64_t>(packed) | static_cast<std::uint64_t>(causal) << 1 |
               static_cast<std::uint64_t>(has_lengths) << 2 | static_cast<std::uint64_t>(has_mask) << 3);
    hasher.add(static_cast<std::uint64_t>(heads));
    hasher.add(static_cast<std::uint64_t>(kv_heads));
    hasher.add(scale);
  }
};

// One of q, k, v or their gradients as the kernels see it.
struct StridedPart {
  Operand operand;
  attention_view view;
};
StridedPart part_of(Operand operand, const Strides& strides, std::int64_t head = 0) {
  return {operand, {head * strides[2], strides[0], strides[1], strides[2]}};
}
using Parts = std::array<StridedPart, 3>;

// The mask [N, H, T, S] of the scores, if any.
struct MaskPart {
  Operand operand = Launch::none();
  attention_mask_view view{};

  MaskPart(const AttentionKind& kind, const Launch& run) {
    if (!kind.has_mask) return;
    operand = run.src(kind.mask_input());
    const Strides strides = run.src_strides(kind.mask_input());
    view = {0, strides[0], strides[2], strides[1], strides[3]};
  }
};

// q, k, v as inputs, or dq, dk, dv as results.
template <class Get>
Parts parts_of(const AttentionKind& kind, const Get& get) {
  if (!kind.packed) return {get(0, 0), get(1, 0), get(2, 0)};
  return {get(0, 0), get(0, kind.heads), get(0, kind.heads + kind.kv_heads)};
}
Parts sources(const AttentionKind& kind, const Launch& run) {
  return parts_of(kind, [&](int i, std::int64_t head) { return part_of(run.src(i), run.src_strides(i), head); });
}

// The sizes of a problem and how its rows are shared among groups.
struct Sizes {
  std::int64_t n, queries, keys, depth;
  std::int64_t slices, rows;  // of a group; kernel constants

  Sizes(const AttentionKind& kind, const Launch& run, Dtype real) {
    const Shape& q = run.src_shape(0);
    n = q[0];
    queries = q[1];
    keys = kind.packed ? q[1] : run.src_shape(1)[1];
    depth = q[3];
    const std::int64_t slice = run.constant("attention", "ATTENTION_SLICE", real);
    slices = (depth + slice - 1) / slice;
    rows = run.constant("attention", "ATTENTION_ROWS", real);
  }
  attention_sizes sizes(const AttentionKind& kind) const {
    return {i32_of(queries), i32_of(keys), i32_of(kind.heads), i32_of(kind.kv_heads), i32_of(depth), kind.flags()};
  }
  std::int64_t groups(std::int64_t of) const { return (of + rows - 1) / rows * slices; }
};

template <class... Operands, std::size_t n>
void launch(Launch& run, const char* entry, const AttentionKind& kind, const Sizes& at, std::int64_t rows,
            std::int64_t heads, const std::array<StridedPart, n>& strided, const Operands&... operands) {
  auto call = run.kernel(entry, run.src_dtype(0));
  call.args(operands...);
  for (const StridedPart& part : strided) call.args(part.view);
  call.args(MaskPart(kind, run).view, at.sizes(kind), kind.scale, DynamicBits{0})
      .over_tiles(at.groups(rows), heads, at.n, kAttentionItems, kAttentionItems);
}

// An array whose last axis is contiguous; the others may have any stride.
Array dense_rows(const Array& a) {
  const Node& node = *a.node();
  return node.is_view && node.shape[3] > 1 && node.strides[3] != 1 ? contiguous(a) : a;
}

// Inputs q, k, v or qkv, then the mask and the lengths if given, y, dy, lse; results dq, dk, dv or dqkv.
class AttentionBackward final : public Op {
 public:
  explicit AttentionBackward(const AttentionKind& kind)
      : Op({.takes_strides = InputSet::below(kind.lengths_input()).with(kind.given() + 1)}), kind_(kind) {}
  std::string_view name() const override { return "attention_backward"; }
  void hash(Hasher& hasher) const override { kind_.hash(hasher); }
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    Cost cost = Op::cost(src, dst);
    const Shape& k = src[kind_.packed ? 0 : 1];
    cost.flops = 14.0 * static_cast<double>(src[static_cast<std::size_t>(kind_.given())].size()) *
                 static_cast<double>(k[1]) * (kind_.causal ? 0.5 : 1.0);
    return cost;
  }

  void launch(Launch& run) const override {
    const Dtype real = real_of(run.src_dtype(0));
    const Sizes at(kind_, run, real);
    const auto [q, k, v] = sources(kind_, run);
    const auto [dq, dk, dv] = parts_of(
        kind_, [&](int i, std::int64_t head) { return part_of(run.dst(i), dense_strides(run.dst_shape(i)), head); });
    const int y = kind_.given();
    const StridedPart dy = part_of(run.src(y + 1), run.src_strides(y + 1));
    const Operand lengths = kind_.has_lengths ? run.src(kind_.lengths_input()) : Launch::none(), lse = run.src(y + 2);
    const Operand mask = MaskPart(kind_, run).operand;
    const Operand delta = run.temp(at.n * kind_.heads * at.queries, real);
    detail::launch(run, "attention_bwd_q", kind_, at, at.queries, kind_.heads, std::array{q, k, v, dy, dq}, q.operand,
                   k.operand, v.operand, mask, lengths, run.src(y), dy.operand, lse, delta, dq.operand);
    detail::launch(run, "attention_bwd_kv", kind_, at, at.keys, kind_.kv_heads, std::array{q, k, v, dy, dk, dv},
                   q.operand, k.operand, v.operand, mask, lengths, dy.operand, lse, delta, dk.operand, dv.operand);
  }

 private:
  AttentionKind kind_;
};

// Bool, where queries see keys by position, [T, S] or [N, 1, T, S]; an empty handle: everywhere. offsets is one number
// or one for each of the batch.
Array seen_by_place(std::int64_t queries, std::int64_t keys, bool causal, const Array& offsets, const Array& lengths) {
  Array seen;
  const auto per_sample = [](const Array& a) { return reshape(a, {a.size(), 1, 1, 1}); };
  const Array columns = arange(0, static_cast<double>(keys), 1, i32);
  if (lengths.defined()) seen = less(columns, per_sample(lengths));
  if (causal) {
    const Array rows = reshape(arange(0, static_cast<double>(queries), 1, i32), {queries, 1});
    const Array past = less_equal(columns, rows + per_sample(offsets));
    seen = seen.defined() ? logical_and(seen, past) : past;
  }
  return seen;
}

// Heads of k and v as many as those of q, heads before steps.
Array each_head(const Array& a, std::int64_t heads) {
  const std::int64_t group = heads / a.shape()[2];
  return transpose(group == 1 ? a : repeat_interleave(a, group, 2), {0, 2, 1, 3});
}

// Inputs q, k, v or qkv, then the mask and the lengths where there are any; results y and lse [N, H, T]. Scalar: the
// offset.
class Attention final : public Op, public Written {
 public:
  explicit Attention(const AttentionKind& kind)
      : Op({.takes_strides = InputSet::below(kind.lengths_input())}), kind_(kind) {}
  std::string_view name() const override { return "attention"; }
  void hash(Hasher& hasher) const override { kind_.hash(hasher); }
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    Cost cost = Op::cost(src, dst);
    const Shape& k = src[kind_.packed ? 0 : 1];
    cost.flops = 4.0 * static_cast<double>(dst[0].size()) * static_cast<double>(k[1]) * (kind_.causal ? 0.5 : 1.0);
    return cost;
  }

  void launch(Launch& run) const override {
    const Sizes at(kind_, run, real_of(run.src_dtype(0)));
    const Parts parts = sources(kind_, run);
    detail::launch(run, "attention_fwd", kind_, at, at.queries, kind_.heads, parts, parts[0].operand, parts[1].operand,
                   parts[2].operand, MaskPart(kind_, run).operand,
                   kind_.has_lengths ? run.src(kind_.lengths_input()) : Launch::none(), run.dst(0), run.dst(1));
  }

  std::vector<Array> gradient(const GradientRequest& request) const override {
    std::vector<Array> inputs(request.src.begin(), request.src.end());
    inputs.insert(inputs.end(), {request.dst[0], dense_rows(request.dy[0]), request.dst[1]});
    std::vector<Result> results;
    results.reserve(3);
    for (int i = 0; i < kind_.arrays(); ++i)
      results.push_back({inputs[static_cast<std::size_t>(i)].shape(), inputs[0].dtype()});
    std::vector<Array> dx = make_arrays(make_op<AttentionBackward>(kind_), results, inputs,
                                        {request.scalars.begin(), request.scalars.end()});
    dx.resize(request.src.size());
    if (const auto mask = static_cast<std::size_t>(kind_.mask_input()); kind_.has_mask && request.wanted[mask])
      dx[mask] = mask_gradient(request);
    return dx;
  }

  // softmax(q k^T scale + mask) v, heads before steps.
  void write(NodeWriter& w) const override {
    const Dtype dtype = w.dtype(0);
    const std::int64_t batch = w.result()[0], queries = w.result()[1], heads = kind_.heads, size = w.result()[3];
    const std::int64_t keys = w.shape(kind_.packed ? 0 : 1)[1], kv_heads = kind_.kv_heads;
    const auto part = [&](std::size_t i) {
      if (!kind_.packed) return w.turned(w.in(i), {0, 2, 1, 3});
      const auto k = static_cast<std::int64_t>(i);
      const std::int64_t from = i == 0 ? 0 : heads + (k - 1) * kv_heads, to = i == 0 ? heads : from + kv_heads;
      return w.turned(w.put("Slice", {w.in(0), w.ints({from}), w.ints({to}), w.ints({2})}), {0, 2, 1, 3});
    };
    const auto repeated = [&](const NodeWriter::Name& value) {
      if (kv_heads == heads) return value;
      const auto apart = w.reshaped(value, {batch, kv_heads, 1, keys, size});
      return w.reshaped(w.expanded(apart, {batch, kv_heads, heads / kv_heads, keys, size}), {batch, heads, keys, size});
    };
    const auto q = w.put("Mul", {part(0), w.number(kind_.scale, dtype)});
    auto scores = w.put("MatMul", {q, w.turned(repeated(part(1)), {0, 1, 3, 2})});
    const double never = -std::numeric_limits<double>::infinity();
    if (kind_.causal) {
      const auto offset = static_cast<std::int64_t>(w.scalar(0).bits);
      std::vector<double> mask;
      for (std::int64_t t = 0; t < queries; ++t)
        for (std::int64_t s = 0; s < keys; ++s) mask.push_back(s <= t + offset ? 0.0 : never);
      scores = w.put("Add", {scores, w.numbers(mask, {queries, keys}, dtype)});
    }
    if (kind_.has_mask) {
      const auto mask = static_cast<std::size_t>(kind_.mask_input());
      scores = w.put("Add", {scores, w.cast(w.in(mask), w.dtype(mask), dtype)});
    }
    if (kind_.has_lengths) {
      std::vector<double> places;
      for (std::int64_t s = 0; s < keys; ++s) places.push_back(static_cast<double>(s));
      const auto lengths = w.reshaped(w.in(static_cast<std::size_t>(kind_.lengths_input())), {batch, 1, 1, 1});
      const auto is_there = w.put("Less", {w.numbers(places, {keys}, i32), lengths});
      scores = w.put("Where", {is_there, scores, w.number(never, dtype)});
    }
    auto weights = w.put("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
    if (kind_.has_mask || kind_.has_lengths)  // a query that sees no key gives 0
      weights = w.put("Where", {w.put("IsNaN", {weights}), w.number(0, dtype), weights});
    w.give(w.turned(w.put("MatMul", {weights, repeated(part(2))}), {0, 2, 1, 3}));
  }

 private:
  // p (dy v' - sum over D of dy y) with p = exp(scores - lse): only a mask that is learned needs it stored.
  Array mask_gradient(const GradientRequest& request) const {
    const Dtype real = request.dst[1].dtype();
    const std::int64_t queries = request.src[0].shape()[1], keys = request.src[1].shape()[1];
    const auto heads = [&](const Array& a) { return each_head(astype(a, real), kind_.heads); };
    const Array mask = request.src[static_cast<std::size_t>(kind_.mask_input())];
    Array scores = matmul(heads(request.src[0]) * kind_.scale, transpose(heads(request.src[1]))) + mask;
    const Array offset = full({1}, static_cast<std::int64_t>(request.scalars[0].bits), i32);
    const Array lengths = kind_.has_lengths ? request.src[static_cast<std::size_t>(kind_.lengths_input())] : Array();
    if (const Array seen = seen_by_place(queries, keys, kind_.causal, offset, lengths); seen.defined())
      scores = where(seen, scores, full({1}, -INFINITY, real));
    const Array dy = heads(request.dy[0]), y = heads(request.dst[0]);
    const Array slopes = matmul(dy, transpose(heads(request.src[2]))) - sum(dy * y, {3}, true);
    return exp(scores - unsqueeze(request.dst[1], 3)) * slopes;
  }

  AttentionKind kind_;
};

bool is_count(const Array& a) { return a.dtype() == i32 || a.dtype() == i64; }

void check_options(const char* op, const AttentionOptions& options, const Shape& scores) {
  if ((options.offset || options.offsets.defined()) && !options.causal)
    throw ArgumentError(std::string(op) + ": the offset belongs to causal attention, which was not asked for");
  if (options.offset && options.offsets.defined())
    throw ArgumentError(std::string(op) + ": takes one offset or one for each of the batch, got both");
  if (options.lengths.defined())
    require(is_count(options.lengths) && options.lengths.shape() == Shape{scores[0]}, op,
            "lengths must be one i32 or i64 for each of the batch", options.lengths, "lengths");
  if (options.offsets.defined())
    require(is_count(options.offsets) && options.offsets.shape() == Shape{scores[0]}, op,
            "offsets must be one i32 or i64 for each of the batch", options.offsets, "offsets");
  if (!(options.soft_cap >= 0 && std::isfinite(options.soft_cap)))
    throw ArgumentError(std::string(op) + ": soft_cap must be 0 or more, got " + std::to_string(options.soft_cap));
  if (!options.mask.defined()) return;
  const Shape& mask = options.mask.shape();
  bool fits = (options.mask.dtype() == bool_ || is_floating(options.mask.dtype())) && mask.rank() <= 4;
  for (int axis = 1; fits && axis <= mask.rank(); ++axis) fits = mask[-axis] == 1 || mask[-axis] == scores[-axis];
  if (!fits)
    throw ArgumentError(std::string(op) + ": mask must be bool or floating and broadcast to [N, H, T, S] = " +
                        scores.to_string() + ", it is " + describe(options.mask));
}

// How many keys more than its place a query sees. Beyond these ends it sees all of them, or none.
std::int64_t offset_of(const AttentionOptions& options, std::int64_t queries, std::int64_t keys) {
  return std::clamp(options.offset.value_or(keys - queries), -queries, keys);
}

bool needs_scores(const AttentionOptions& options) { return options.offsets.defined() || options.soft_cap > 0; }

// Attention with all scores stored, of f32 or f64 arrays.
Array attend_by_scores(const Array& q, const Array& k, const Array& v, const AttentionOptions& options) {
  const std::int64_t queries = q.shape()[1], keys = k.shape()[1], heads = q.shape()[2];
  const Dtype real = q.dtype();
  const double scale = options.scale.value_or(1.0 / std::sqrt(static_cast<double>(q.shape()[3])));
  Array scores = matmul(each_head(q, heads) * scale, transpose(each_head(k, heads)));
  if (options.soft_cap > 0) scores = tanh(scores / options.soft_cap) * options.soft_cap;
  const Array offsets = options.offsets.defined() ? options.offsets : full({1}, offset_of(options, queries, keys), i32);
  Array visible = seen_by_place(queries, keys, options.causal, offsets, options.lengths);
  const auto restrict_to = [&](const Array& seen) { visible = visible.defined() ? logical_and(visible, seen) : seen; };
  if (options.mask.defined() && options.mask.dtype() == bool_) restrict_to(options.mask);
  if (options.mask.defined() && options.mask.dtype() != bool_) {
    const Array mask = astype(options.mask, real);
    const Array is_seen = greater(mask, full({1}, -INFINITY, real));
    scores = scores + where(is_seen, mask, zeros({1}, real));
    restrict_to(is_seen);
  }
  Array p;
  if (visible.defined()) {
    constexpr double kHidden = -1e30;  // finite: a query that sees nothing gives 0 and not NaN
    p = softmax(where(visible, scores, full({1}, kHidden, real))) * astype(visible, real);
  } else {
    p = softmax(scores);
  }
  return transpose(matmul(p, each_head(v, heads)), {0, 2, 1, 3});
}

Array attend_by_scores_of_any(const Array& q, const Array& k, const Array& v, const AttentionOptions& options) {
  const Shape result{q.shape()[0], q.shape()[1], q.shape()[2], v.shape()[3]};
  if (result.size() == 0 || k.shape()[1] == 0) return zeros(result, q.dtype());
  const Dtype real = real_of(q.dtype());
  return astype(attend_by_scores(astype(q, real), astype(k, real), astype(v, real), options), q.dtype());
}

Array widened(const Array& a, std::int64_t depth) {
  return a.shape()[3] == depth ? a : pad(a, {{0, 0}, {0, 0}, {0, 0}, {0, depth - a.shape()[3]}});
}

void require_rank_4(const char* op, const Array& a, const char* name, const char* need) {
  require(a.defined() && is_floating(a.dtype()) && a.shape().rank() == 4, op, need, a, name);
}

Array attend(AttentionKind kind, std::vector<Array> arrays, const AttentionOptions& options) {
  const Shape &q = arrays[0].shape(), &k = arrays.back().shape();
  const std::int64_t offset = offset_of(options, q[1], k[1]);
  kind.causal = options.causal;
  kind.has_mask = options.mask.defined();
  kind.has_lengths = options.lengths.defined();
  kind.scale = options.scale.value_or(1.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(q[3], 1))));
  const Shape result{q[0], q[1], kind.heads, q[3]};
  const Dtype dtype = arrays[0].dtype(), real = real_of(dtype);
  if (result.size() == 0 || k[1] == 0) return zeros(result, dtype);
  require_ints("attention", "queries, keys, heads of both and their size", {q[1], k[1], q[2], k[2], q[3]});
  // A longer head's result is stored before it is complete, so it may not be rounded there.
  constexpr std::int64_t kOnePart = 64;
  const Dtype inside = q[3] <= kOnePart ? dtype : real;
  for (Array& a : arrays) a = dense_rows(as_dtype(a, inside));
  if (kind.has_mask) {
    const Array& mask = options.mask;
    const Array added =
        mask.dtype() == bool_ ? where(mask, zeros({1}, real), full({1}, -INFINITY, real)) : astype(mask, real);
    arrays.push_back(broadcast_to(added, {q[0], kind.heads, q[1], k[1]}));
  }
  if (kind.has_lengths) arrays.push_back(as_i32(options.lengths));
  const Result results[] = {{result, inside}, {Shape{q[0], kind.heads, q[1]}, real}};
  const Array y = make_arrays(make_op<Attention>(kind), results, arrays,
                              {static_cast<std::uint64_t>(options.causal ? offset : 0)})[0];
  return as_dtype(y, dtype);
}

}  // namespace
}  // namespace detail

const detail::CastRow kScaledDotProductAttentionCast{"scaled_dot_product_attention", CastRule::lower};
Array scaled_dot_product_attention(const Input& q, const Input& k, const Input& v, const AttentionOptions& options) {
  if (const detail::Casts cast(kScaledDotProductAttentionCast); cast)
    return scaled_dot_product_attention(cast(q), cast(k), cast(v), options);
  constexpr const char* kOp = "scaled_dot_product_attention";
  using detail::describe;
  detail::require_rank_4(kOp, q, "q", "q must be floating [N, T, H, D]");
  detail::require_rank_4(kOp, k, "k", "k must be floating [N, S, G, D]");
  detail::require_rank_4(kOp, v, "v", "v must be floating [N, S, G, D]");
  const auto fits = [](bool ok, const char* need, const Array& a, const char* a_name, const Array& b,
                       const char* b_name) {
    if (!ok)
      throw ArgumentError(std::string(kOp) + ": " + need + ", " + a_name + " is " + describe(a) + ", " + b_name +
                          " is " + describe(b));
  };
  fits(k.shape()[0] == v.shape()[0] && k.shape()[1] == v.shape()[1] && k.shape()[2] == v.shape()[2] &&
           k.dtype() == v.dtype(),
       "k and v must agree in N, S, G and dtype", k, "k", v, "v");
  fits(q.dtype() == k.dtype(), "q and k must have one dtype", q, "q", k, "k");
  fits(q.shape()[0] == k.shape()[0] && q.shape()[3] == k.shape()[3], "q and k must agree in N and D", q, "q", k, "k");
  const std::int64_t heads = q.shape()[2], kv_heads = k.shape()[2];
  fits(heads == 0 || (kv_heads > 0 && heads % kv_heads == 0), "the heads of q must be a multiple of those of k", q, "q",
       k, "k");
  const std::int64_t queries = q.shape()[1], keys = k.shape()[1], depth = q.shape()[3], result_depth = v.shape()[3];
  detail::check_options(kOp, options, Shape{q.shape()[0], heads, queries, keys});
  if (detail::needs_scores(options)) return detail::attend_by_scores_of_any(q, k, v, options);
  const std::int64_t offset = detail::offset_of(options, queries, keys);
  if (options.causal && offset < 0) {  // the first queries see no key
    const std::int64_t blind = std::min(-offset, queries);
    AttentionOptions seeing = options;
    seeing.offset = 0;
    if (const int rank = options.mask.defined() ? options.mask.shape().rank() : 0;
        rank > 1 && options.mask.shape()[rank - 2] > 1)
      seeing.mask = slice(options.mask, rank - 2, blind, queries);
    const Array none = zeros({q.shape()[0], blind, heads, result_depth}, q.dtype());
    if (blind == queries) return none + sum(q * 0.0) + sum(k * 0.0) + sum(v * 0.0);  // with a gradient of 0
    return concat({none, scaled_dot_product_attention(slice(q, 1, blind, queries), k, v, seeing)}, 1);
  }
  if (depth != result_depth && depth > 0 && result_depth > 0) {
    AttentionOptions padded = options;
    padded.scale = options.scale.value_or(1.0 / std::sqrt(static_cast<double>(depth)));
    const std::int64_t longer = std::max(depth, result_depth);
    return slice(scaled_dot_product_attention(detail::widened(q, longer), detail::widened(k, longer),
                                              detail::widened(v, longer), padded),
                 3, 0, result_depth);
  }
  return detail::attend({.packed = false, .heads = heads, .kv_heads = kv_heads}, {q, k, v}, options);
}

const detail::CastRow kPackedAttentionCast{"packed_attention", CastRule::lower};
Array packed_attention(const Input& qkv, std::int64_t heads, const AttentionOptions& options) {
  if (const detail::Casts cast(kPackedAttentionCast); cast) return packed_attention(cast(qkv), heads, options);
  constexpr const char* kOp = "packed_attention";
  detail::require_rank_4(kOp, qkv, "qkv", "qkv must be floating [N, T, H + 2 G, D]");
  const std::int64_t kv_heads = (qkv.shape()[2] - heads) / 2;
  if (heads < 1 || kv_heads < 1 || heads + 2 * kv_heads != qkv.shape()[2] || heads % kv_heads != 0)
    throw ArgumentError(std::string(kOp) + ": with " + std::to_string(heads) +
                        " heads of q the others must be as many of k as of v, and divide them, qkv is " +
                        detail::describe(qkv));
  const std::int64_t tokens = qkv.shape()[1];
  detail::check_options(kOp, options, Shape{qkv.shape()[0], heads, tokens, tokens});
  if (detail::needs_scores(options) || options.mask.defined() || options.offset.value_or(0) < 0)
    return scaled_dot_product_attention(slice(qkv, 2, 0, heads), slice(qkv, 2, heads, heads + kv_heads),
                                        slice(qkv, 2, heads + kv_heads, qkv.shape()[2]), options);
  return detail::attend({.packed = true, .heads = heads, .kv_heads = kv_heads}, {qkv}, options);
}

}  // namespace samebytes
