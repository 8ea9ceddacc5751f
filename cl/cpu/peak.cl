// How fast the device can multiply and add: the measure that speeds of kernels are compared with.
//
// peak_fma: dst [rows, 64]. Geometry: one group of one item per row. A row runs rounds * PEAK_FMAS fused multiply-adds in
// PEAK_CHAINS chains of vectors that do not depend on each other, enough of them to hide the latency of one; nothing is read.
// Chains stay in registers: 16 of 32 with AVX-512, 8 of 16 with narrower vectors. Writes the sum of its chains to its row.
// Program: core
#define PEAK_FMAS 1024
#define PEAK_COLUMNS 64
#define PEAK_CHAINS_VW16 16
#define PEAK_CHAINS_VW8 8
#define PEAK_CHAINS_VW4 8
#define PEAK_CHAINS_VW2 8
#define PEAK_CHAINS_VW1 8
#define PEAK_CHAINS SB_JOIN(PEAK_CHAINS_VW, VW)

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void peak_fma(ARRAY(real, dst), const int rounds, const real scale,
                                                                      const real shift) {
  START(dst);
  const long row = get_group_id(0);
  vreal chain[PEAK_CHAINS];
#pragma unroll
  for (int i = 0; i < PEAK_CHAINS; ++i) chain[i] = (vreal)((real)i);
  const vreal scales = (vreal)(scale), shifts = (vreal)(shift);
  const long turns = (long)rounds * (PEAK_FMAS / (PEAK_CHAINS * VW));
  for (long turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (int i = 0; i < PEAK_CHAINS; ++i) chain[i] = FMA(chain[i], scales, shifts);
  }
  vreal sum = (vreal)((real)0);
#pragma unroll
  for (int i = 0; i < PEAK_CHAINS; ++i) sum += chain[i];
  for (int column = 0; column < PEAK_COLUMNS; column += VW) VSTORE(sum, dst + row * PEAK_COLUMNS + column);
}
