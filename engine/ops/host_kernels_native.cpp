// Kernels of cl/cpu as C++ (kernel_language.h), with the vectors that the kernel library gives them on a CPU of this
// level: the host form of their small launches (plan/host_kernel.h). Every operation rounds exactly, and the text fixes
// their order, so the bytes are those of the device. Functions that a driver rounds in its own way do not compile.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ops/native.h"
#include "shared/grid_sample.h"
#include "shared/norm.h"
#include "shared/pad.h"
#include "shared/pool_nd.h"
#include "shared/scatter.h"

// A CPU without fused multiply-add has none of them: its driver rounds in another way.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)

// Kernel texts have unused functions and loops that unroll as far as a constant goes.
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"  // of the compiler's own headers
#endif
#pragma GCC diagnostic ignored "-Wpsabi"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wsign-compare"

#define SAMEBYTES_KERNEL_TEXT
#define SAMEBYTES_CPU
#define SAMEBYTES_HAS_FMA
#if defined(__AVX512F__)
#define VW 16
#elif defined(__AVX2__)
#define VW 8
#else
#define VW 4
#endif
#include "ops/kernel_language.h"

namespace samebytes::detail {
namespace {

#include "common/common.clh"
#undef SB_FETCH
#define SB_FETCH(p) __builtin_prefetch(p)
#undef SB_HIDE
#define SB_HIDE(p) __asm__ volatile("" : "+r"(p))
#include "shared/functions.h"

#if defined(__AVX512F__)
// As common/transposition.clh: neighbours, pairs and twice fours change places.
void sb_transpose(vreal* r) {
  const auto of = [](__m512 v) { return vreal((vreal::Lanes)v); };
  const auto pairs = [](__m512 v) { return _mm512_castps_pd(v); };
  const auto ones = [](__m512d v) { return _mm512_castpd_ps(v); };
  __m512 s[VW], t[VW];
  for (int i = 0; i < VW; i += 2) {
    s[i] = _mm512_unpacklo_ps((__m512)r[i].lanes, (__m512)r[i + 1].lanes);
    s[i + 1] = _mm512_unpackhi_ps((__m512)r[i].lanes, (__m512)r[i + 1].lanes);
  }
  for (int i = 0; i < VW; i += 4)
    for (int k = 0; k < 2; ++k) {
      t[i + 2 * k] = ones(_mm512_unpacklo_pd(pairs(s[i + k]), pairs(s[i + 2 + k])));
      t[i + 2 * k + 1] = ones(_mm512_unpackhi_pd(pairs(s[i + k]), pairs(s[i + 2 + k])));
    }
  constexpr int even = 0x88, odd = 0xdd;
  for (int i = 0; i < 4; ++i) {
    const __m512 a = _mm512_shuffle_f32x4(t[i], t[4 + i], even), b = _mm512_shuffle_f32x4(t[8 + i], t[12 + i], even);
    const __m512 c = _mm512_shuffle_f32x4(t[i], t[4 + i], odd), d = _mm512_shuffle_f32x4(t[8 + i], t[12 + i], odd);
    r[i] = of(_mm512_shuffle_f32x4(a, b, even));
    r[4 + i] = of(_mm512_shuffle_f32x4(c, d, even));
    r[8 + i] = of(_mm512_shuffle_f32x4(a, b, odd));
    r[12 + i] = of(_mm512_shuffle_f32x4(c, d, odd));
  }
}
#else
void sb_transpose(vreal* r) {
  real from[VW * VW], to[VW * VW];
  std::memcpy(from, r, sizeof from);
  for (int i = 0; i < VW; ++i)
    for (int k = 0; k < VW; ++k) to[i * VW + k] = from[k * VW + i];
  std::memcpy(r, to, sizeof to);
}
#endif

#include "cpu/batch_norm.cl"
#include "cpu/bincount.cl"
#include "cpu/conv.cl"
#include "cpu/conv_filter_lines.clh"
#include "cpu/conv_single.cl"
#include "cpu/cross_entropy.cl"
#include "cpu/fill.cl"
#include "cpu/finite.cl"
#include "cpu/grid_sample.cl"
#include "cpu/group_norm.cl"
#include "cpu/indexing.cl"
#include "cpu/layer_norm.cl"
#include "cpu/pad.cl"
#include "cpu/pool2d.cl"
#include "cpu/pool_nd.cl"
#include "cpu/product.cl"
#include "cpu/reduce.cl"
#include "cpu/resample.cl"
#include "cpu/resize.cl"
#include "cpu/rms_norm.cl"
#include "cpu/scan.cl"
#include "cpu/scatter.cl"
#include "cpu/softmax.cl"
#include "cpu/sort.cl"
#include "cpu/triangle.cl"
#include "cpu/winograd.cl"

// What the kernel takes, from what comes with the launch and with each run.
struct Arguments {
  const HostArgument* next;
  void* const* array;
  const double* scalar;
  template <class T>
  T take() {
    const HostArgument& argument = *next++;
    if constexpr (std::is_pointer_v<T>) {
      return static_cast<T>(*array++);
    } else if constexpr (std::is_class_v<T>) {
      T structure;
      std::memcpy(&structure, argument.structure, sizeof structure);
      return structure;
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(argument.kind == HostArgument::Kind::real ? argument.real : *scalar++);
    } else {
      return static_cast<T>(argument.kind == HostArgument::Kind::whole
                                ? argument.whole
                                : static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(*scalar++)));
    }
  }
};

template <class... P>
void run_groups(void (*kernel)(P...), const HostGroups& groups, Arguments arguments, std::int64_t begin,
                std::int64_t end) {
  struct Taken {
    std::tuple<std::remove_const_t<P>...> values;
  };
  const Taken taken{{arguments.take<std::remove_const_t<P>>()...}};  // braces: in order
  WorkGroup& group = work_group;
  std::copy_n(groups.count, 3, group.count);
  const auto first = static_cast<std::size_t>(begin);
  group.id[0] = first % groups.count[0];
  group.id[1] = first / groups.count[0] % groups.count[1];
  group.id[2] = first / groups.count[0] / groups.count[1];
  for (std::int64_t at = begin; at < end; ++at) {
    std::apply(kernel, taken.values);
    if (++group.id[0] < groups.count[0]) continue;
    group.id[0] = 0;
    if (++group.id[1] < groups.count[1]) continue;
    group.id[1] = 0;
    ++group.id[2];
  }
}

template <auto kKernel>
void run_kernel(const HostGroups& groups, const HostArgument* arguments, void* const* arrays, const double* scalars,
                std::int64_t begin, std::int64_t end) {
  run_groups(kKernel, groups, {arguments, arrays, scalars}, begin, end);
}

struct Entry {
  std::string_view name;
  HostKernel kernel;
};
#define SAMEBYTES_ENTRY(name, passes) SAMEBYTES_PRODUCTS(name, passes, 0)
#define SAMEBYTES_PRODUCTS(name, passes, products)    \
  {                                                   \
#name, { run_kernel<name>, VW, passes, products } \
  }
constexpr Entry kEntries[] = {
    SAMEBYTES_ENTRY(batch_norm_stats, 4),
    SAMEBYTES_ENTRY(batch_norm_merge, 4),
    SAMEBYTES_ENTRY(batch_norm_bwd_stats, 3),
    SAMEBYTES_ENTRY(batch_norm_bwd_merge, 4),
    SAMEBYTES_ENTRY(bincount_parts, 8),
    SAMEBYTES_ENTRY(bincount_merge, 1),
    SAMEBYTES_PRODUCTS(conv_tiles, 1, 0.25),
    SAMEBYTES_PRODUCTS(conv_single_fwd, 1, 0.5),
    SAMEBYTES_ENTRY(cross_entropy_fwd, 12),
    SAMEBYTES_ENTRY(cross_entropy_denominator, 4),
    SAMEBYTES_ENTRY(cross_entropy_total, 4),
    SAMEBYTES_ENTRY(cross_entropy_bwd, 10),
    SAMEBYTES_ENTRY(fill_real, 1),
    SAMEBYTES_ENTRY(finite_parts_32, 1),
    SAMEBYTES_ENTRY(finite_all, 1),
    SAMEBYTES_ENTRY(grid_sample_fwd, 8),
    SAMEBYTES_ENTRY(grid_sample_slope, 16),
    SAMEBYTES_ENTRY(grid_sample_places, 20),
    SAMEBYTES_ENTRY(grid_sample_sum, 8),
    SAMEBYTES_ENTRY(group_norm_merge, 1),
    SAMEBYTES_ENTRY(group_norm_running, 4),
    SAMEBYTES_ENTRY(group_norm_apply, 2),
    SAMEBYTES_ENTRY(group_norm_bwd_merge, 8),
    SAMEBYTES_ENTRY(group_norm_bwd_apply, 3),
    SAMEBYTES_ENTRY(indexing_take_8, 2),
    SAMEBYTES_ENTRY(indexing_take_16, 2),
    SAMEBYTES_ENTRY(indexing_take_32, 2),
    SAMEBYTES_ENTRY(indexing_take_64, 2),
    SAMEBYTES_ENTRY(indexing_gather_8, 4),
    SAMEBYTES_ENTRY(indexing_gather_16, 4),
    SAMEBYTES_ENTRY(indexing_gather_32, 4),
    SAMEBYTES_ENTRY(indexing_gather_64, 4),
    SAMEBYTES_ENTRY(indexing_sort, 20),
    SAMEBYTES_ENTRY(indexing_sum, 4),
    SAMEBYTES_ENTRY(indexing_scatter_add, 12),
    SAMEBYTES_ENTRY(indexing_put, 12),
    SAMEBYTES_ENTRY(layer_norm_fwd, 4),
    SAMEBYTES_ENTRY(layer_norm_bwd, 8),
    SAMEBYTES_ENTRY(layer_norm_reduce, 2),
    SAMEBYTES_ENTRY(pad_bwd, 4),
    SAMEBYTES_ENTRY(pool2d_max_fwd, 4),
    SAMEBYTES_ENTRY(pool2d_max_fwd_wide, 4),
    SAMEBYTES_ENTRY(pool2d_max_bwd, 4),
    SAMEBYTES_ENTRY(pool2d_max_bwd_wide, 4),
    SAMEBYTES_ENTRY(pool2d_avg_fwd, 3),
    SAMEBYTES_ENTRY(pool2d_avg_bwd, 3),
    SAMEBYTES_ENTRY(pool_nd_max, 2),
    SAMEBYTES_ENTRY(pool_nd_max_bwd, 3),
    SAMEBYTES_ENTRY(product_columns_bwd, 5),
    SAMEBYTES_ENTRY(product_rows_bwd, 4),
    SAMEBYTES_ENTRY(reduce_rows, 1),
    SAMEBYTES_ENTRY(reduce_columns, 1),
    SAMEBYTES_ENTRY(reduce_argmax, 2),
    SAMEBYTES_ENTRY(resample_axis, 4),
    SAMEBYTES_ENTRY(resize_fwd, 4),
    SAMEBYTES_ENTRY(resize_bwd, 6),
    SAMEBYTES_ENTRY(rms_norm_fwd, 3),
    SAMEBYTES_ENTRY(rms_norm_bwd, 6),
    SAMEBYTES_ENTRY(rms_norm_reduce, 2),
    SAMEBYTES_ENTRY(scan_parts_real, 2),
    SAMEBYTES_ENTRY(scan_offsets_real, 1),
    SAMEBYTES_ENTRY(scan_product, 2),
    SAMEBYTES_ENTRY(scan_product_bwd, 4),
    SAMEBYTES_ENTRY(scan_places, 8),
    SAMEBYTES_ENTRY(scatter_last, 8),
    SAMEBYTES_ENTRY(scatter_real, 8),
    SAMEBYTES_ENTRY(softmax_fwd, 10),
    SAMEBYTES_ENTRY(softmax_bwd, 4),
    SAMEBYTES_ENTRY(sort_blocks_real, 60),
    SAMEBYTES_ENTRY(sort_blocks_i32, 60),
    SAMEBYTES_ENTRY(sort_blocks_i64, 60),
    SAMEBYTES_ENTRY(sort_merge_32, 20),
    SAMEBYTES_ENTRY(sort_merge_64, 20),
    SAMEBYTES_ENTRY(sort_top_real, 20),
    SAMEBYTES_ENTRY(sort_top_i32, 20),
    SAMEBYTES_ENTRY(sort_top_i64, 20),
    SAMEBYTES_ENTRY(sort_top_merge_32, 20),
    SAMEBYTES_ENTRY(sort_top_merge_64, 20),
    SAMEBYTES_ENTRY(triangle_8, 1),
    SAMEBYTES_ENTRY(triangle_16, 1),
    SAMEBYTES_ENTRY(triangle_32, 1),
    SAMEBYTES_ENTRY(triangle_64, 1),
    SAMEBYTES_PRODUCTS(winograd_tiles, 1, 0.15),
    SAMEBYTES_ENTRY(winograd_weights, 8),
};

}  // namespace

template <>
HostKernel host_kernel_at<kThisLevel>(std::string_view entry) {
  for (const Entry& known : kEntries)
    if (known.name == entry) return known.kernel;
  return {};
}

}  // namespace samebytes::detail
#else
namespace samebytes::detail {

template <>
HostKernel host_kernel_at<kThisLevel>(std::string_view) {
  return {};
}

}  // namespace samebytes::detail
#endif
