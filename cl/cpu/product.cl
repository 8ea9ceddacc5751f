// The gradient of a product: dx [O, R, I] = dy [O, I] times the product of all other elements of src [O, R, I] along R.
// Each line is walked along twice: down, with the product of what lies before an element, and up, with the product of
// what lies behind it and dy. Nothing is divided, so zeros need no case of their own.

#define PRODUCT_TILE 128  // columns of a group of product_columns_bwd
#define PRODUCT_BLOCK 64  // its rows that are walked along twice while they are in the cache

// I = 1: src and dx [rows, columns], dy [rows]. A lane walks along the elements of its own, and has the product of the
// other lanes beside dy. Geometry: a work-group takes rows_per_group rows.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void product_rows_bwd(ARRAY(const real, src),
                                                                              ARRAY(const real, dy), ARRAY(real, dx),
                                                                              const long rows, const long columns,
                                                                              const int rows_per_group) {
  START(src);
  START(dy);
  START(dx);
  const long first = (long)get_group_id(0) * rows_per_group, end = min(rows, first + rows_per_group);
  for (long row = first; row < end; ++row) {
    const __global real* x = src + row * columns;
    __global real* to = dx + row * columns;
    vreal before = 1;
    for (long i = 0; i < columns; i += VW) {
      sb_store(before, to + i, columns - i);
      before *= sb_load(x + i, columns - i, columns - i, 1);
    }
    real lanes[VW], others[VW], product = dy[row];
    VSTORE(before, lanes);
    for (int lane = 0; lane < VW; ++lane) {
      others[lane] = product;
      product *= lanes[lane];
    }
    product = 1;
    for (int lane = VW - 1; lane >= 0; --lane) {
      others[lane] *= product;
      product *= lanes[lane];
    }
    vreal behind = VLOAD(others);
    for (long i = (columns - 1) / VW * VW; i >= 0; i -= VW) {
      sb_store(sb_load(to + i, columns - i, columns - i, 1) * behind, to + i, columns - i);
      behind *= sb_load(x + i, columns - i, columns - i, 1);
    }
  }
}

// I > 1. Geometry: a work-group for each (o, PRODUCT_TILE columns), the columns fastest.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void product_columns_bwd(ARRAY(const real, src),
                                                                                 ARRAY(const real, dy), ARRAY(real, dx),
                                                                                 const long reduced, const long inner) {
  START(src);
  START(dy);
  START(dx);
  const long tiles = (inner + PRODUCT_TILE - 1) / PRODUCT_TILE, o = (long)get_group_id(0) / tiles;
  const long column = ((long)get_group_id(0) - o * tiles) * PRODUCT_TILE,
             columns = min((long)PRODUCT_TILE, inner - column);
  const __global real* x = src + o * reduced * inner + column;
  __global real* to = dx + o * reduced * inner + column;
  real product[PRODUCT_TILE];
  // The first row of each block holds the product of the rows before the block.
  const long last = (reduced - 1) / PRODUCT_BLOCK * PRODUCT_BLOCK;
  for (long c = 0; c < columns; c += VW) VSTORE((vreal)(1), product + c);
  for (long block = 0; block <= last; block += PRODUCT_BLOCK) {
    for (long c = 0; c < columns; c += VW) {
      vreal before = VLOAD(product + c);
      sb_store(before, to + block * inner + c, columns - c);
      if (block == last) continue;
      for (long r = block; r < block + PRODUCT_BLOCK; ++r)
        before *= sb_load(x + r * inner + c, columns - c, columns - c, 1);
      VSTORE(before, product + c);
    }
  }
  for (long c = 0; c < columns; c += VW)
    VSTORE(sb_load(dy + o * inner + column + c, columns - c, columns - c, 1), product + c);
  for (long block = last; block >= 0; block -= PRODUCT_BLOCK) {
    const long end = min(reduced, block + PRODUCT_BLOCK);
    for (long c = 0; c < columns; c += VW) {
      vreal before = sb_load(to + block * inner + c, columns - c, columns - c, 1);
      for (long r = block + 1; r < end; ++r) {
        before *= sb_load(x + (r - 1) * inner + c, columns - c, columns - c, 1);
        sb_store(before, to + r * inner + c, columns - c);
      }
      vreal behind = VLOAD(product + c);
      for (long r = end - 1; r >= block; --r) {
        const long at = r * inner + c;
        sb_store(sb_load(to + at, columns - c, columns - c, 1) * behind, to + at, columns - c);
        behind *= sb_load(x + at, columns - c, columns - c, 1);
      }
      VSTORE(behind, product + c);
    }
  }
}

#undef PRODUCT_TILE
#undef PRODUCT_BLOCK
