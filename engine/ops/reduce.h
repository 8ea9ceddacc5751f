// Shared by the reductions (reduce.cpp, reduce_view.cpp), and sums over rows as other ops need them.
#pragma once

#include <cstdint>
#include <span>

#include "graph/launch.h"
#include "samebytes/array.h"

namespace samebytes::detail {

// As in cl/*/reduce.cl and reduce_view.cl, which has no root.
enum class ReduceWhat : int { sum = 0, max = 1, min = 2, squares = 3, product = 4, root_of_squares = 5 };
constexpr std::int64_t kReducedInOnePass = 32768;  // longer reductions are cut into parts, which are reduced again
using AxisMask = std::uint32_t;
inline bool is_reduced(AxisMask axes, int axis) { return (axes >> axis & 1u) != 0; }

// A dense [outer, reduced, inner].
struct ReducePattern {
  std::int64_t outer, reduced, inner;
};

// Records dst [outer, inner] of a dense src, floating, i32 or i64; results are divided by `divisor`. Squares need inner
// = 1, and their root at most kReducedInOnePass of them.
void launch_pattern(Launch& run, ReduceWhat what, Operand src, Operand dst, ReducePattern p, double divisor,
                    Dtype src_dtype, Dtype dst_dtype);

// Whether launch_view_reduction() can read `a` in place: at most four kept and four reduced axes that do not merge.
bool is_reducible_in_place(const Array& a, AxisMask axes, ReduceWhat what = ReduceWhat::sum);
// Records the reduction of input 0, of any dtype and strides, to result 0, for the mean divided by its count. Axes of
// stride 0 are not walked along: a sum is multiplied by their size. A product walks along them.
void launch_view_reduction(Launch& run, ReduceWhat what, bool is_mean, AxisMask axes);

// The gradient of the product of a non-empty floating `a` along `axes`: dy times the product of all other elements. dy
// has the type of a, and size 1 where the product was taken.
Array product_gradient(const Array& a, const Array& dy, AxisMask axes);

// The Euclidean norm over `axes`, in ascending order, of a floating `a`, or an empty handle where they are not the last
// ones of a dense array, or too long for one pass.
Array norm_of_rows(const Array& a, std::span<const int> axes, bool keep);

// mean() of a floating array in its own type, whatever the Autocast scope says of mean().
Array mean_over(const Array& a, AxisMask axes);

// The sums of a non-empty a [..., C] over all but the last axis: [C], in the dtype of sums (f32 for 16 bits).
Array column_sums(const Array& a);

// Records dst [columns] = the sums over the rows of src; the dtypes of both are equal, or dst's is that of src's sums.
void launch_column_sums(Launch& run, Operand src, Operand dst, std::int64_t rows, std::int64_t columns, Dtype src_dtype,
                        Dtype dst_dtype);

}  // namespace samebytes::detail
