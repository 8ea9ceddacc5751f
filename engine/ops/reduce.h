// Sums over rows as other ops need them.
#pragma once

#include <cstdint>

#include "graph/launch.h"
#include "samebytes/array.h"

namespace samebytes::detail {

// Of a [..., C], not empty: the sums over all but the last axis, [C], of the dtype that sums have (f32 of 16 bits).
Array column_sums(const Array& a);

// Records dst [columns] = the sums over the rows of src; the dtypes of both are equal, or dst's is that of src's sums.
void launch_column_sums(Launch& run, Operand src, Operand dst, std::int64_t rows, std::int64_t columns, Dtype src_dtype,
                        Dtype dst_dtype);

}  // namespace samebytes::detail
