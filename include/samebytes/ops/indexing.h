// Elements by their numbers: engine/ops/indexing.cpp. An index array is i32 (u8 is widened). Nobody reads it on the
// host, so an index outside the axis cannot throw: what it asks for is NaN in a floating result, -1 in i32, 255 in u8,
// true in bool, and check_nan finds it. Negative indices are outside: they do not count from the end.
// Gradients that meet in one element are added in the order of the index, so the same seed gives the same bytes.
// All throw ArgumentError: op, need, what came.
#pragma once

#include <cstdint>
#include <optional>

#include "samebytes/array.h"

namespace samebytes {

// ids [...], table [V, D] -> [..., D]: row ids[i] of the table for each i. The gradient writes each row of the table
// once, whatever ids repeat. The row `padding_index` takes no gradient (PyTorch's padding_idx); ids outside [0, V) give
// rows of NaN and take none.
Array embedding(const Array& ids, const Array& table, std::optional<std::int32_t> padding_index = {});
// NumPy's take, PyTorch's index_select: the axis of a, of size D, is replaced by the axes of the index, so
// a [outer, D, inner], index [...] -> [outer, ..., inner]. Indices outside take no gradient.
Array take(const Array& a, const Array& index, int axis = 0);
// PyTorch's gather: result[i][j][k] = a[index[i][j][k]][j][k] for axis 0. The result has the shape of the index, which
// has the rank of a and is no larger than it in the other axes. Indices outside take no gradient.
Array gather(const Array& a, int axis, const Array& index);
// PyTorch's scatter_add: a with src[i][j][k] added to a[index[i][j][k]][j][k], for axis 0, in the order of i. The index
// has the rank of a, is no larger than a in the other axes and no larger than src in any. An index outside makes its
// whole line along the axis NaN. a and src are floating.
Array scatter_add(const Array& a, int axis, const Array& index, const Array& src);
// ids [...] -> [..., classes] of 0 and 1; an id outside [0, classes) gives a row of zeros.
Array one_hot(const Array& ids, std::int64_t classes, Dtype dtype = f32);

}  // namespace samebytes
