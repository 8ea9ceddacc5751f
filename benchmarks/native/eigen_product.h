// Eigen's single-precision matrix product, compiled by itself with -O3 -march=native and OpenMP: the peer on the same
// cores. c [m, n] = a [m, k] x b [k, n], dense rows.
#pragma once

namespace samebytes::benchmarks {

void eigen_product(const float* a, const float* b, float* c, int m, int n, int k);

}  // namespace samebytes::benchmarks
