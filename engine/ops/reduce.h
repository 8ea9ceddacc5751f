// Shared by the reductions (reduce.cpp, reduce_view.cpp), and sums over rows as other ops need them.
#pragma once

#include <cstdint>

#include "graph/launch.h"
#include "samebytes/array.h"

namespace samebytes::detail {

enum class ReduceWhat : int { sum = 0, max = 1, min = 2, squares = 3 };  // as in cl/*/reduce.cl and reduce_view.cl
using AxisMask = std::uint32_t;
inline bool is_reduced(AxisMask axes, int axis) { return (axes >> axis & 1u) != 0; }

// A dense [outer, reduced, inner].
struct ReducePattern {
  std::int64_t outer, reduced, inner;
};

// Records dst [outer, inner] of a dense src, floating or i32; results are divided by `divisor`.
void launch_pattern(Launch& run, ReduceWhat what, Operand src, Operand dst, ReducePattern p, double divisor,
                    Dtype src_dtype, Dtype dst_dtype);

// Whether launch_view_reduction() can read `a` in place: at most four kept and four reduced axes that do not merge.
bool is_reducible_in_place(const Array& a, AxisMask axes);
// Records the reduction of input 0, of any dtype and strides, to result 0, for the mean divided by its count. Axes of
// stride 0 are not walked along: a sum is multiplied by their size.
void launch_view_reduction(Launch& run, ReduceWhat what, bool is_mean, AxisMask axes);

// The sums of a non-empty a [..., C] over all but the last axis: [C], in the dtype of sums (f32 for 16 bits).
Array column_sums(const Array& a);

// Records dst [columns] = the sums over the rows of src; the dtypes of both are equal, or dst's is that of src's sums.
void launch_column_sums(Launch& run, Operand src, Operand dst, std::int64_t rows, std::int64_t columns, Dtype src_dtype,
                        Dtype dst_dtype);

}  // namespace samebytes::detail
