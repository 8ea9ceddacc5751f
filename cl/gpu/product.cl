// The gradient of a product: dx [O, R, I] = dy [O, I] times the product of all other elements of src [O, R, I] along R.
// Each line is walked along twice: down, with the product of what lies before an element, and up, with the product of
// what lies behind it and dy. Nothing is divided, so zeros need no case of their own.

#define PRODUCT_MOST_ITEMS 256
#define PRODUCT_TILE 64  // columns of a group of product_columns_bwd, one for each item

// I = 1: src and dx [rows, columns], dy [rows]. The items of a row walk along elements of their own, and have the
// product of the other items beside dy. Geometry: a work-group takes rows_per_group (a power of two) rows, its items
// shared equally among them.
__kernel void product_rows_bwd(ARRAY(const real, src), ARRAY(const real, dy), ARRAY(real, dx), const long rows,
                               const long columns, const int rows_per_group) {
  START(src);
  START(dy);
  START(dx);
  __local real scratch[PRODUCT_MOST_ITEMS];
  const int lanes = (int)get_local_size(0) / rows_per_group, item = (int)get_local_id(0), lane = item & (lanes - 1);
  const long row = (long)get_group_id(0) * rows_per_group + item / lanes;
  const bool has_row = row < rows;
  const __global real* x = src + row * columns;
  __global real* to = dx + row * columns;
  real before = 1;
  for (long i = lane; has_row && i < columns; i += lanes) {
    to[i] = before;
    before *= x[i];
  }
  scratch[item] = before;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (!has_row || lane >= columns) return;
  real behind = dy[row];
  for (int other = 0; other < lanes; ++other)
    if (other != lane) behind *= scratch[item - lane + other];
  for (long i = (columns - 1 - lane) / lanes * lanes + lane; i >= 0; i -= lanes) {
    to[i] *= behind;
    behind *= x[i];
  }
}

// I > 1. Geometry: a work-group of PRODUCT_TILE items for each (o, PRODUCT_TILE columns), the columns fastest.
__kernel void product_columns_bwd(ARRAY(const real, src), ARRAY(const real, dy), ARRAY(real, dx), const long reduced,
                                  const long inner) {
  START(src);
  START(dy);
  START(dx);
  const long tiles = (inner + PRODUCT_TILE - 1) / PRODUCT_TILE, o = (long)get_group_id(0) / tiles;
  const long column = ((long)get_group_id(0) - o * tiles) * PRODUCT_TILE + get_local_id(0);
  if (column >= inner) return;
  const __global real* x = src + o * reduced * inner + column;
  __global real* to = dx + o * reduced * inner + column;
  real before = 1, behind = dy[o * inner + column];
  for (long r = 0; r < reduced; ++r) {
    to[r * inner] = before;
    before *= x[r * inner];
  }
  for (long r = reduced - 1; r >= 0; --r) {
    to[r * inner] *= behind;
    behind *= x[r * inner];
  }
}

#undef PRODUCT_MOST_ITEMS
#undef PRODUCT_TILE
