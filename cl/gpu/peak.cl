// How fast the device can multiply and add: the measure that speeds of kernels are compared with.
//
// peak_fma: dst [rows, 64]. Geometry: one group of 64 items per row. A row runs rounds * PEAK_FMAS fused multiply-adds, each item
// PEAK_CHAINS chains that do not depend on each other, enough of them to hide the latency of one; nothing is read. Every item
// writes the sum of its chains to its column.
// Program: core
#define PEAK_FMAS 1024
#define PEAK_COLUMNS 64
#define PEAK_CHAINS 16  // PEAK_FMAS / PEAK_COLUMNS

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void peak_fma(ARRAY(real, dst), const int rounds, const real scale,
                                                                       const real shift) {
  START(dst);
  real chain[PEAK_CHAINS];
#pragma unroll
  for (int i = 0; i < PEAK_CHAINS; ++i) chain[i] = (real)i;
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < PEAK_CHAINS; ++i) chain[i] = FMA(chain[i], scale, shift);
  }
  real sum = 0;
#pragma unroll
  for (int i = 0; i < PEAK_CHAINS; ++i) sum += chain[i];
  dst[(long)get_group_id(0) * PEAK_COLUMNS + get_local_id(0)] = sum;
}
