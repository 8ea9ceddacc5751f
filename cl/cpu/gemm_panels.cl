// All of a B in the panels of gemm.cl, for products that read it again and again: weights in inference.
//
//   b[k][column] or b[column][k]  ->  out [panel][k][GEMM_NR]
//
// A product with GEMM_PANELS_B packs nothing, and reads a panel from its first to its last byte, as the processor
// fetches ahead, where lines of b are columns or rows of the whole matrix apart. Each group packs one panel.
//
// Of this personality alone.
// Program: products
#include "cpu/gemm_pack.clh"
#include "shared/gemm.h"

// The panels of B (k x n) of one product, each of the columns that gemm_column gives it; what lies behind the last
// column is anything. Groups: x = panels.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void gemm_panels(ARRAY(const stored, b), ARRAY(real, out),
                                                                         const gemm_sizes s) {
  START(b);
  START(out);
#ifdef GEMM_HAS_PANELS
  const int panel = get_group_id(0), j = gemm_column(panel, s.n);
  gemm_pack(b + j * s.b_col, s.b_col, s.b_row, s.n - j, s.k, 0, GEMM_PANEL_AT(out + (long)panel * s.k * GEMM_NR));
#endif
}
