// The functions of ops/host.h and ops/gemm.h that are compiled for several levels: each calls that of this CPU.
#include "ops/native.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <type_traits>

#include "ops/gemm.h"
#include "ops/sizes.h"

namespace samebytes::detail {
namespace {

HostLevel find_level() {
  if constexpr (kHostLevels > 1) {
#if defined(__x86_64__)
    // Each says too that the system saves the registers. The lists are those of CMakeLists.txt.
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi") ||
        !__builtin_cpu_supports("bmi2"))
      return HostLevel::baseline;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512cd") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl"))
      return HostLevel::avx2;
    return HostLevel::avx512;
#endif
  }
  return HostLevel::baseline;
}

// Calls with the level of this CPU as a constant.
template <class Call>
void at_level(Call call) {
#if SAMEBYTES_LEVELS > 1
  switch (host_level()) {
    case HostLevel::avx512: return call(std::integral_constant<HostLevel, HostLevel::avx512>());
    case HostLevel::avx2: return call(std::integral_constant<HostLevel, HostLevel::avx2>());
    case HostLevel::baseline: break;
  }
#endif
  call(std::integral_constant<HostLevel, HostLevel::baseline>());
}

}  // namespace

HostLevel host_level() {
  static const HostLevel level = find_level();
  return level;
}

namespace {

// Blocks that nobody uses. A lock would cost two threads that take one at the same time more than their work.
constexpr std::size_t kKeptScratch = 16;
std::array<std::atomic<void*>, kKeptScratch> kept_scratch;

void* take_scratch() {
  for (std::atomic<void*>& kept : kept_scratch)
    if (void* const block = kept.load(std::memory_order_relaxed) ? kept.exchange(nullptr) : nullptr) return block;
  void* const block = std::aligned_alloc(64, kMostScratch);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

Scratch::Scratch() : data(take_scratch()) {}
Scratch::~Scratch() {
  for (std::atomic<void*>& kept : kept_scratch) {
    void* none = nullptr;
    if (kept.load(std::memory_order_relaxed) == nullptr && kept.compare_exchange_strong(none, data)) return;
  }
  std::free(data);
}

void gemm_native(const float* a, const float* b, float* c, const GemmProblem& problem) {
  at_level([&](auto level) { gemm_at<level>(a, b, c, problem); });
}
void gemm_native(const double* a, const double* b, double* c, const GemmProblem& problem) {
  at_level([&](auto level) { gemm_at<level>(a, b, c, problem); });
}

std::int64_t HostPointwise::lanes() const {
  constexpr std::int64_t in_cache = 8192;
  std::int64_t lanes = kMostLanes;
  while (lanes > kLeastLanes && lanes * registers > in_cache) lanes /= 2;
  return lanes;
}

std::int64_t HostPointwise::rows() const {
  std::int64_t rows = 1;
  for (std::size_t axis = 0; axis + 1 < sizes.size(); ++axis) rows *= sizes[axis];
  return rows;
}

std::int64_t HostPointwise::rows_together() const {
  if (is_copy() || sizes.back() == 0) return 1;
  return std::max<std::int64_t>(1, std::min(lanes() / sizes.back(), rows()));
}

std::int64_t HostPointwise::units() const {
  const std::int64_t rows = this->rows();
  if (const int turned = turned_axis(); turned >= 0) {
    const std::int64_t size = sizes[static_cast<std::size_t>(turned)];
    return rows / size * ceil_div(size, kTurnedRows) * ceil_div(sizes.back(), kTurnedInner);
  }
  if (const std::int64_t together = rows_together(); together > 1) return ceil_div(rows, together);
  return rows * ceil_div(sizes.back(), lanes());
}

bool HostPointwise::is_read_in_place(const Input& input) const {
  if (input.strides.back() != 1 || !is_of_register(input.dtype)) return false;
  if (rows_together() > 1) {
    std::int64_t dense = 1;
    for (std::size_t axis = sizes.size(); axis-- > 0; dense *= sizes[axis])
      if (sizes[axis] > 1 && input.strides[axis] != dense) return false;
  }
  return outputs.size() == 1 ||
         std::none_of(outputs.begin(), outputs.end(), [&](const Output& output) { return output.from == input.to; });
}

bool HostPointwise::is_copy() const {
  return code.empty() && inputs.size() == 1 && outputs.size() == 1 && outputs[0].from == inputs[0].to &&
         outputs[0].dtype == inputs[0].dtype && is_of_register(inputs[0].dtype);
}

int HostPointwise::turned_axis() const {
  constexpr std::int64_t least = 8;  // neighbours that a line of the cache gives at once
  if (!is_copy() || inputs[0].strides.back() == 1) return -1;
  for (int axis = static_cast<int>(sizes.size()) - 2; axis >= 0; --axis)
    if (inputs[0].strides[static_cast<std::size_t>(axis)] == 1 && sizes[static_cast<std::size_t>(axis)] >= least)
      return axis;
  return -1;
}

bool HostPointwise::is_written_in_place() const {
  return outputs.size() == 1 && !code.empty() && code.back().to == outputs[0].from && is_of_register(outputs[0].dtype);
}

double HostPointwise::starts() const {
  constexpr double of_row = 0.25;  // the next stretch of neighbours, where it is only read or moved
  const bool is_of_rows = is_copy() && inputs[0].strides.back() == 1;
  double starts = (is_of_rows ? of_row : passes()) * static_cast<double>(units());
  if (rows_together() > 1)
    for (const Input& input : inputs)
      if (!is_read_in_place(input)) starts += of_row * static_cast<double>(rows());
  return starts;
}

double HostPointwise::passes() const {
  if (is_copy()) return turned_axis() >= 0 ? 2 : 1;
  std::size_t count = code.size() + (is_written_in_place() ? 0 : outputs.size());
  for (const Input& input : inputs) count += is_read_in_place(input) ? 0 : 1;
  return static_cast<double>(std::max<std::size_t>(1, count));
}

void host_pointwise(const HostPointwise& kernel, void* const* arrays, const double* scalars, std::int64_t begin,
                    std::int64_t end) {
  at_level([&](auto level) { host_pointwise_at<level>(kernel, arrays, scalars, begin, end); });
}

template <class T>
void host_reduce_rows(const HostRows& shape, const T* src, T* dst) {
  at_level([&](auto level) { host_reduce_rows_at<level, T>(shape, src, dst); });
}
template void host_reduce_rows(const HostRows&, const float*, float*);
template void host_reduce_rows(const HostRows&, const double*, double*);

template <class T>
void host_reduce_columns(const HostColumns& shape, const T* src, T* dst) {
  at_level([&](auto level) { host_reduce_columns_at<level, T>(shape, src, dst); });
}
template void host_reduce_columns(const HostColumns&, const float*, float*);
template void host_reduce_columns(const HostColumns&, const double*, double*);

template <class T>
void host_reduce_whole(int what, std::int64_t outer, std::int64_t reduced, std::int64_t inner, const T* src, T* dst) {
  at_level([&](auto level) { host_reduce_whole_at<level, T>(what, outer, reduced, inner, src, dst); });
}
template void host_reduce_whole(int, std::int64_t, std::int64_t, std::int64_t, const std::int32_t*, std::int32_t*);
template void host_reduce_whole(int, std::int64_t, std::int64_t, std::int64_t, const std::int64_t*, std::int64_t*);

template <class T>
void host_argmax(std::int64_t outer, std::int64_t reduced, std::int64_t inner, const T* src, std::int32_t* dst) {
  at_level([&](auto level) { host_argmax_at<level, T>(outer, reduced, inner, src, dst); });
}
template void host_argmax(std::int64_t, std::int64_t, std::int64_t, const float*, std::int32_t*);
template void host_argmax(std::int64_t, std::int64_t, std::int64_t, const double*, std::int32_t*);

template <class T>
void host_arange(std::int64_t n, T start, T step, bool is_fused, T* dst) {
  at_level([&](auto level) { host_arange_at<level, T>(n, start, step, is_fused, dst); });
}
template void host_arange(std::int64_t, float, float, bool, float*);
template void host_arange(std::int64_t, double, double, bool, double*);

template <class T>
void host_uniform(const HostStream& stream, std::int64_t n, int bits, T low, T span, T* dst, std::int64_t begin,
                  std::int64_t end) {
  at_level([&](auto level) { host_uniform_at<level, T>(stream, n, bits, low, span, dst, begin, end); });
}
template void host_uniform(const HostStream&, std::int64_t, int, float, float, float*, std::int64_t, std::int64_t);
template void host_uniform(const HostStream&, std::int64_t, int, double, double, double*, std::int64_t, std::int64_t);

template <class T>
void host_dropout(const HostStream& stream, std::int64_t n, std::uint32_t threshold, T scale, const T* src, T* dst,
                  std::int64_t begin, std::int64_t end) {
  at_level([&](auto level) { host_dropout_at<level, T>(stream, n, threshold, scale, src, dst, begin, end); });
}
template void host_dropout(const HostStream&, std::int64_t, std::uint32_t, float, const float*, float*, std::int64_t,
                           std::int64_t);
template void host_dropout(const HostStream&, std::int64_t, std::uint32_t, double, const double*, double*, std::int64_t,
                           std::int64_t);

template <class T>
void host_sums(const HostScan& shape, const T* src, T* dst) {
  at_level([&](auto level) { host_sums_at<level, T>(shape, src, dst); });
}
template void host_sums(const HostScan&, const float*, float*);
template void host_sums(const HostScan&, const double*, double*);
template void host_sums(const HostScan&, const std::int32_t*, std::int32_t*);
template void host_sums(const HostScan&, const std::int64_t*, std::int64_t*);

template <class T>
void host_products(const HostScan& shape, const T* src, T* dst) {
  at_level([&](auto level) { host_products_at<level, T>(shape, src, dst); });
}
template void host_products(const HostScan&, const float*, float*);
template void host_products(const HostScan&, const double*, double*);

template <class T>
void host_product(const HostProduct& shape, const T* a, const T* b, const T* bias, const T* residual, T* c,
                  std::int64_t begin, std::int64_t end) {
  at_level([&](auto level) { host_product_at<level, T>(shape, a, b, bias, residual, c, begin, end); });
}
template void host_product(const HostProduct&, const float*, const float*, const float*, const float*, float*,
                           std::int64_t, std::int64_t);
template void host_product(const HostProduct&, const double*, const double*, const double*, const double*, double*,
                           std::int64_t, std::int64_t);

HostKernel host_kernel(std::string_view entry) {
  HostKernel kernel{};
  at_level([&](auto level) { kernel = host_kernel_at<level>(entry); });
  return kernel;
}

}  // namespace samebytes::detail
