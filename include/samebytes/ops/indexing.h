// Indexing: engine/ops/indexing.cpp, scatter.cpp. An index array is i32, i64 or u8. The host does not read it, so an
// index outside the axis cannot throw: it gives NaN in a floating result (check_nan finds it), -1 in i32 and i64, 255
// in u8, true in bool. Those of take, gather and scatter_add count from the end if they are negative, from -1 to -D;
// ids are not. Gradients of one element are added in the order of the index, so the same seed gives the same bytes. All
// throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include <cstdint>
#include <optional>

#include "samebytes/array.h"

namespace samebytes {

// ids [...], table [V, D] -> [..., D]: row ids[i] of the table for each i. The gradient writes each row of the table
// once, even if ids repeat. The row `padding_index` gets no gradient (PyTorch's padding_idx); ids outside [0, V) give
// rows of NaN and no gradient.
Array embedding(const Input& ids, const Input& table, std::optional<std::int32_t> padding_index = {});
// NumPy's take, PyTorch's index_select: the axis of a, of size D, is replaced by the axes of the index, so
// a [outer, D, inner], index [...] -> [outer, ..., inner]. Indices outside get no gradient.
Array take(const Input& a, const Input& index, int axis = 0);
// PyTorch's gather: result[i][j][k] = a[index[i][j][k]][j][k] for axis 0. The result has the shape of the index, which
// must have the rank of a and not exceed it in the other axes. Indices outside get no gradient.
Array gather(const Input& a, int axis, const Input& index);
// PyTorch's scatter_add: a with src[i][j][k] added to a[index[i][j][k]][j][k], for axis 0, in the order of i. The index
// must have the rank of a and exceed neither a in the other axes nor src in any. An index outside sets its whole line
// along the axis to NaN. a and src must be floating.
Array scatter_add(const Input& a, int axis, const Input& index, const Input& src);
// PyTorch's scatter: a with a[index[i][j][k]][j][k] replaced by src[i][j][k], for axis 0; where an index comes twice in
// a line the last one counts, and only that one gets a gradient. Shapes and indices as in scatter_add; a and src are
// floating, i32 or i64.
Array scatter(const Input& a, int axis, const Input& index, const Input& src);
// PyTorch's scatter_reduce: src[i][j][k] combined with a[index[i][j][k]][j][k] in the order of i. Without include_self
// places that an index names start from src alone. amax and amin propagate NaN and share the gradient among equal
// values; the gradient of prod is correct also where elements are 0.
enum class ScatterReduce : std::uint8_t { sum, prod, mean, amax, amin };
struct ScatterOptions {
  ScatterReduce reduce = ScatterReduce::sum;
  bool include_self = true;
};
Array scatter_reduce(const Input& a, int axis, const Input& index, const Input& src,
                     const ScatterOptions& options = {});
// ids [...] -> [..., classes] with values 0 and 1; an id outside [0, classes) gives a row of zeros.
Array one_hot(const Input& ids, std::int64_t classes, Dtype dtype = f32);

}  // namespace samebytes
