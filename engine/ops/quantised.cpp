// Products with matrices of quantised rows. Kernels: cl/*/quantised.cl, in the tiles of gemm.cl.
#include "samebytes/ops/quantised.h"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/gguf_blocks.h"
#include "graph/autocast.h"
#include "graph/launch.h"
#include "ops/dtypes.h"
#include "ops/gemm.h"
#include "ops/host.h"
#include "ops/reduce.h"
#include "ops/rows.h"
#include "samebytes/ops.h"
#include "shared/quantised.h"

namespace samebytes {
namespace detail {
namespace {

constexpr std::array<QuantisedFormat, 6> kFormats{
    {{"Q8_0", 32, 34}, {"Q4_0", 32, 18}, {"Q4_K", 256, 144}, {"Q5_K", 256, 176}, {"Q6_K", 256, 210}, {"NF4", 64, 36}}};

int code_of(QuantisedType type) { return QUANTISED_Q8_0 + static_cast<int>(type); }

// x [M, K], blocks u8 [N, B], perhaps bias [N]: x W^T, or transposed x [M, N]: x W.
class QuantisedLinear final : public Op {
 public:
  QuantisedLinear(QuantisedType type, bool is_transposed)
      : Op({.takes_strides = {0}, .is_flat = {1}, .takes_epilogue = true}),
        type_(type),
        is_transposed_(is_transposed) {}
  std::string_view name() const override { return is_transposed_ ? "quantised_linear_backward" : "quantised_linear"; }
  void hash(Hasher& hasher) const override {
    hasher.add(static_cast<std::uint64_t>(type_) << 1 | std::uint64_t{is_transposed_});
  }
  Cost cost(std::span<const Shape> src, std::span<const Shape> dst) const override {
    Cost cost;
    cost.flops = 2.0 * static_cast<double>(dst[0].size()) * static_cast<double>(src[0].back());
    cost.bytes = 4.0 * static_cast<double>(dst[0].size() + src[0].size()) + static_cast<double>(src[1].size());
    return cost;
  }

  void launch(Launch& run) const override {
    const Shape& x = run.src_shape(0);
    const Strides strides = run.src_strides(0);
    GemmProblem p;
    p.m = x[0];
    p.k = x[1];
    p.n = run.dst_shape()[1];
    p.a_row = strides[0];
    p.a_col = strides[1];
    launch_gemm_quantised(run, run.src(0), run.src(1), run.optional_src(2), run.dst(), p, run.dst_dtype(),
                          {run.src_shape(1)[1], code_of(type_), int{is_transposed_}});
  }

  std::vector<Array> gradient(const GradientRequest& g) const override {
    std::vector<Array> result(g.src.size());
    if (g.wanted[0]) {
      const Array inputs[] = {g.dy[0], g.src[1]};
      result[0] =
          make_array(make_op<QuantisedLinear>(type_, !is_transposed_), g.src[0].shape(), g.src[0].dtype(), inputs);
    }
    if (g.src.size() > 2 && g.wanted[2]) result[2] = column_sums(g.dy[0]);
    return result;
  }

 private:
  QuantisedType type_;
  bool is_transposed_;
};

class Dequantise final : public Op {
 public:
  explicit Dequantise(QuantisedType type) : Op({.is_flat = InputSet::all()}), type_(type) {}
  std::string_view name() const override { return "dequantise"; }
  void hash(Hasher& hasher) const override { hasher.add(static_cast<std::uint64_t>(type_)); }
  void launch(Launch& run) const override {
    const Shape& shape = run.dst_shape();
    const RowShare share = share_rows(run, shape[0], shape[1]);
    KernelCall call = run.kernel("quantised_values");
    call.args(run.src(0), run.dst(), quantised_rows{run.src_shape(0)[1], code_of(type_), 0}, shape[0], shape[1],
              share.rows_per_group)
        .over_rows(share.groups, share.group);
    const std::string_view name = format_of(type_).name;
    if (shape.size() > kMostHostValues || !can_dequantise(name)) return;
    // One by one, without vectors.
    constexpr double passes = 8;
    call.on_host({.steps = static_cast<double>(shape[0]), .values = passes * static_cast<double>(shape.size())},
                 shape[0],
                 [name, bytes = run.src_shape(0)[1], columns = shape[1]](void* const* arrays, const double*,
                                                                         std::int64_t begin, std::int64_t end) {
                   const std::span src(static_cast<const std::byte*>(arrays[0]), static_cast<std::size_t>(end * bytes));
                   const std::span dst(static_cast<float*>(arrays[1]), static_cast<std::size_t>(end * columns));
                   samebytes::detail::dequantise(name, src.subspan(static_cast<std::size_t>(begin * bytes)),
                                                 dst.subspan(static_cast<std::size_t>(begin * columns)));
                 });
  }
  std::vector<Array> gradient(const GradientRequest& g) const override { return std::vector<Array>(g.src.size()); }

 private:
  QuantisedType type_;
};

// The values of a row of these blocks.
std::int64_t columns_of(const char* op, const Array& blocks, QuantisedType type) {
  require(blocks.defined() && blocks.dtype() == u8 && blocks.shape().rank() == 2, op, "blocks must be u8 [rows, bytes]",
          blocks, "blocks");
  const QuantisedFormat& format = format_of(type);
  if (blocks.shape()[1] % format.bytes != 0)
    throw ArgumentError(std::string(op) + ": rows must be whole blocks of " + std::string(format.name) + " of " +
                        std::to_string(format.bytes) + " bytes, got " + std::to_string(blocks.shape()[1]) + " bytes");
  return blocks.shape()[1] / format.bytes * format.values;
}

}  // namespace
}  // namespace detail

const QuantisedFormat& format_of(QuantisedType type) { return detail::kFormats[static_cast<std::size_t>(type)]; }

const detail::CastRow kQuantisedLinearCast{"quantised_linear", CastRule::keep_f32};
Array quantised_linear(const Input& x, const Input& blocks, QuantisedType type, const Input& bias) {
  constexpr const char* kOp = "quantised_linear";
  if (const detail::Casts cast(kQuantisedLinearCast); cast)
    return quantised_linear(cast(x), blocks, type, bias.defined() ? cast(bias) : Array{});
  using detail::require;
  require(x.defined() && is_floating(x.dtype()) && x.shape().rank() >= 1, kOp,
          "x must be floating with one axis or more", x, "x");
  const std::int64_t in = detail::columns_of(kOp, blocks, type), out = blocks.shape()[0];
  if (x.shape().back() != in)
    throw ArgumentError(std::string(kOp) + ": x must have " + std::to_string(in) + " values in its last axis, x is " +
                        x.shape().to_string());
  if (bias.defined())
    require(is_floating(bias.dtype()) && bias.shape() == Shape{out}, kOp, "bias must be floating [out]", bias, "bias");
  Shape dst = x.shape();
  dst[-1] = out;
  if (x.size() == 0 || blocks.size() == 0) {
    const Array nothing = zeros(dst, x.dtype());
    return bias.defined() ? nothing + detail::as_dtype(bias, x.dtype()) : nothing;
  }
  if (x.shape().rank() != 2) return reshape(quantised_linear(reshape(x, {-1, in}), blocks, type, bias), dst);
  std::vector<Array> inputs{x, blocks};
  if (bias.defined()) inputs.push_back(detail::as_dtype(bias, detail::real_of(x.dtype())));
  return detail::make_array(detail::make_op<detail::QuantisedLinear>(type, false), dst, x.dtype(), inputs);
}

Array dequantise(const Input& blocks, QuantisedType type) {
  const std::int64_t columns = detail::columns_of("dequantise", blocks, type);
  const Shape shape{blocks.shape()[0], columns};
  if (shape.size() == 0) return zeros(shape, f32);
  return detail::make_array(detail::make_op<detail::Dequantise>(type), shape, f32, std::span(&blocks.array(), 1));
}

}  // namespace samebytes
