// Linear algebra of small matrices, computed by Eigen on the host over the same bytes. Axes before the last two are a
// batch. Gradients flow, and are made of the same functions. f32 is computed in f64 and rounded. A singular matrix
// gives infinities or NaN, as the work is done when the result is asked for. All throw ArgumentError with the op's
// name, what it expected and what it got.
#pragma once

#include "samebytes/array.h"

namespace samebytes::linalg {

// x of a x = b: a [..., N, N], b [..., N, K] with the same batch.
Array solve(const Input& a, const Input& b);
Array inverse(const Input& a);
Array det(const Input& a);  // [..., N, N] -> [...]
// The lower triangle L of a = L transpose(L), for a symmetric positive definite a, of which it reads the lower
// triangle; NaN for others. The gradient is symmetric.
Array cholesky(const Input& a);
// a = vectors diag(values) transpose(vectors) for a symmetric a, of which it reads the lower triangle; values ascend.
// The gradient of the vectors needs values that differ.
struct EighResult {
  Array values;   // [..., N]
  Array vectors;  // [..., N, N], in columns
};
EighResult eigh(const Input& a);
// a = u diag(s) vt with K = min(M, N) singular values, which descend. The gradient of u and vt needs values that differ
// and are not 0.
struct SvdResult {
  Array u;   // [..., M, K]
  Array s;   // [..., K]
  Array vt;  // [..., K, N]
};
SvdResult svd(const Input& a);

}  // namespace samebytes::linalg
