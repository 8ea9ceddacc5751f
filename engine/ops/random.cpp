// Random arrays and dropout from counter-based streams (cl/*/random.cl). Seed, counter, domain and all other numbers
// are changing scalars, so the next draw is the same plan.
#include <bit>
#include <cmath>

#include "graph/launch.h"
#include "ops/as_value.h"
#include "ops/host.h"
#include "ops/sizes.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

std::int64_t block_count(std::int64_t n) { return (n + 3) / 4; }

// The stream of a key, as the kernels take it: seed, counter and the number of its first block; then `numbers`.
std::vector<Scalar> stream_of(RandomKey key, std::initializer_list<Scalar> numbers) {
  const PhiloxCounter first = random_counter(key.domain, 0, 0, 0);
  std::vector<Scalar> scalars{key.seed, key.counter, static_cast<std::uint64_t>(first[1]) << 32 | first[0]};
  scalars.insert(scalars.end(), numbers);
  return scalars;
}

// As many values as a pass over them takes: ten rounds of words.
constexpr double kHostPasses = 12;
HostWork random_work(std::int64_t n) {
  return {.steps = static_cast<double>(ceil_div(n, HostStream::kUnit)), .values = kHostPasses * static_cast<double>(n)};
}
HostStream stream_in(const double* scalars) {
  return {std::bit_cast<std::uint64_t>(scalars[0]), std::bit_cast<std::uint64_t>(scalars[1]),
          std::bit_cast<std::uint64_t>(scalars[2])};
}
template <class T>
void add_host_uniform(KernelCall& call, std::int64_t n, int bits) {
  call.on_host(random_work(n), ceil_div(n, HostStream::kUnit),
               [=](void* const* arrays, const double* scalars, std::int64_t begin, std::int64_t end) {
                 host_uniform(stream_in(scalars), n, bits, static_cast<T>(scalars[3]), static_cast<T>(scalars[4]),
                              static_cast<T*>(arrays[0]), begin, end);
               });
}
template <class T>
void add_host_dropout(KernelCall& call, std::int64_t n) {
  call.on_host(random_work(n), ceil_div(n, HostStream::kUnit),
               [=](void* const* arrays, const double* scalars, std::int64_t begin, std::int64_t end) {
                 const auto threshold = static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(scalars[3]));
                 host_dropout(stream_in(scalars), n, threshold, static_cast<T>(scalars[4]),
                              static_cast<const T*>(arrays[0]), static_cast<T*>(arrays[1]), begin, end);
               });
}

// Scalars: seed, counter, first block, low, span.
class Uniform final : public Op {
 public:
  explicit Uniform(int bits) : bits_(bits) {}
  std::string_view name() const override { return "uniform"; }
  void hash(Hasher& hasher) const override { hasher.add(static_cast<std::uint64_t>(bits_)); }
  void launch(Launch& run) const override {
    const std::int64_t n = run.dst_shape().size();
    KernelCall call = run.kernel("random_uniform", run.dst_dtype());
    call.args(run.dst(), n, DynamicBits{0}, DynamicBits{1}, DynamicBits{2}, DynamicReal{3}, DynamicReal{4}, bits_)
        .over_elements(block_count(n));
    if (n <= kMostHostValues && run.dst_dtype() == f32) add_host_uniform<float>(call, n, bits_);
    if (n <= kMostHostValues && run.dst_dtype() == f64) add_host_uniform<double>(call, n, bits_);
  }

 private:
  int bits_;  // of each number
};

// Scalars: seed, counter, first block, mean, deviation.
class Normal final : public Op {
 public:
  std::string_view name() const override { return "normal"; }
  void launch(Launch& run) const override {
    const std::int64_t n = run.dst_shape().size();
    run.kernel("random_normal", run.dst_dtype())
        .args(run.dst(), n, DynamicBits{0}, DynamicBits{1}, DynamicBits{2}, DynamicReal{3}, DynamicReal{4})
        .over_elements(block_count(n));
  }
};

// Scalars: seed, counter, first block, threshold, scale. Linear in its input, so its gradient is itself with the same
// key.
class Dropout final : public Op {
 public:
  std::string_view name() const override { return "dropout"; }
  void launch(Launch& run) const override {
    const std::int64_t n = run.dst_shape().size();
    KernelCall call = run.kernel("random_dropout", run.dst_dtype());
    call.args(run.src(0), run.dst(), n, DynamicBits{0}, DynamicBits{1}, DynamicBits{2}, DynamicBits{3}, DynamicReal{4})
        .over_elements(block_count(n));
    if (n <= kMostHostValues && run.dst_dtype() == f32) add_host_dropout<float>(call, n);
    if (n <= kMostHostValues && run.dst_dtype() == f64) add_host_dropout<double>(call, n);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    const Array& dy = request.dy[0];
    return {make_array(make_op<Dropout>(), dy.shape(), dy.dtype(), std::span<const Array>(&dy, 1),
                       {request.scalars.begin(), request.scalars.end()})};
  }
};

void require_floating(const char* op, Dtype dtype) {
  if (!is_floating(dtype))
    throw ArgumentError(std::string(op) + ": expected a floating dtype, got " + std::string(name_of(dtype)));
}

// Random bits of a number in [0, 1) that the dtype holds exactly.
int uniform_bits(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return 11;
    case Dtype::bf16: return 8;
    case Dtype::f64: return 32;
    default: return 24;
  }
}

}  // namespace
}  // namespace detail

Array uniform(const Shape& shape, double low, double high, Dtype dtype, RandomKey key, const detail::Here&) {
  detail::require_floating("uniform", dtype);
  if (!(std::isfinite(low) && std::isfinite(high) && low <= high))
    throw ArgumentError("uniform: low must be at most high and both finite, got " + std::to_string(low) + " and " +
                        std::to_string(high));
  const auto op = detail::make_op<detail::Uniform>(detail::uniform_bits(dtype));
  const Array result =
      detail::make_array(op, shape, detail::real_of(dtype), {}, detail::stream_of(key, {low, high - low}));
  return result.dtype() == dtype ? result : astype(result, dtype);
}

Array uniform(const Shape& shape, double low, double high, Dtype dtype, const detail::Here& here) {
  return uniform(shape, low, high, dtype, next_random_key(), here);
}

Array normal(const Shape& shape, double mean, double deviation, Dtype dtype, RandomKey key, const detail::Here&) {
  detail::require_floating("normal", dtype);
  if (!(std::isfinite(mean) && std::isfinite(deviation) && deviation >= 0))
    throw ArgumentError("normal: mean must be finite and deviation 0 or more, got " + std::to_string(mean) + " and " +
                        std::to_string(deviation));
  static const auto op = detail::make_op<detail::Normal>();
  const Array result =
      detail::make_array(op, shape, detail::real_of(dtype), {}, detail::stream_of(key, {mean, deviation}));
  return result.dtype() == dtype ? result : astype(result, dtype);
}

Array normal(const Shape& shape, double mean, double deviation, Dtype dtype, const detail::Here& here) {
  return normal(shape, mean, deviation, dtype, next_random_key(), here);
}

Array dropout(const Input& a, double p, RandomKey key) {
  detail::require(a.defined() && is_floating(a.dtype()), "dropout", "needs a floating array", a, "src");
  if (!(p >= 0.0 && p <= 1.0)) throw ArgumentError("dropout: p must be in [0, 1], got " + std::to_string(p));
  if (p == 0.0) return detail::as_value(a);
  if (p == 1.0) return zeros(a.shape(), a.dtype());
  const auto threshold =
      static_cast<std::uint64_t>(std::min(p * 0x1p32, 0x1p32 - 1.0));  // drops p * 2^32 of the 2^32 words
  key.domain = RandomDomain::dropout;
  static const auto op = detail::make_op<detail::Dropout>();
  return detail::make_array(op, a.shape(), a.dtype(), std::span<const Array>(&a.array(), 1),
                            detail::stream_of(key, {threshold, 1.0 / (1.0 - p)}));
}

Array dropout(const Input& a, double p) {
  return dropout(a, p, p > 0.0 && p < 1.0 ? next_random_key(RandomDomain::dropout) : RandomKey{});
}

}  // namespace samebytes
