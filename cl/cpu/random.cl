// Counter-based random numbers: Philox4x32-10 (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011). Block b of a stream is philox(counter {b low, b high, counter low, counter high}, key {seed low, seed high}),
// where b counts from `first`, which says what the numbers are for: samebytes/random.h's domain << 56. Element i takes
// word i % 4 of block first + i / 4. dst [n]; geometry: over_elements((n + 3) / 4); 16 blocks, 64 elements, at a time.
// Words and bits are the same on every device; normal differs by the rounding of log, sqrt and cospi.
// Program: core

#ifdef SAMEBYTES_F64
typedef double16 random_real16;
#define RANDOM_REAL16(x) convert_double16(x)
#define RANDOM_MASK16(x) convert_long16(x)
#else
typedef float16 random_real16;
#define RANDOM_REAL16(x) convert_float16(x)
#define RANDOM_MASK16(x) (x)
#endif
#define RANDOM_LANES (ulong16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)

// Word k of 16 blocks in a_k -> the 64 words in the order of the elements.
#define RANDOM_ROW(row, lanes, a0, a1, a2, a3) \
  row.s048c = a0.lanes;                        \
  row.s159d = a1.lanes;                        \
  row.s26ae = a2.lanes;                        \
  row.s37bf = a3.lanes
#define RANDOM_IN_ORDER(rows, a0, a1, a2, a3) \
  RANDOM_ROW(rows[0], s0123, a0, a1, a2, a3); \
  RANDOM_ROW(rows[1], s4567, a0, a1, a2, a3); \
  RANDOM_ROW(rows[2], s89ab, a0, a1, a2, a3); \
  RANDOM_ROW(rows[3], scdef, a0, a1, a2, a3)

// The 64-bit products of 16 words with a constant: even lanes and odd lanes apart, which needs no shuffles.
#define RANDOM_PRODUCTS(high, low, x, constant)                                                                    \
  const ulong8 even_##low = (as_ulong8(x) & 0xFFFFFFFFul) * constant, odd_##low = (as_ulong8(x) >> 32) * constant; \
  const uint16 high = as_uint16((even_##low >> 32) | (odd_##low & 0xFFFFFFFF00000000ul));                          \
  const uint16 low = as_uint16((even_##low & 0xFFFFFFFFul) | (odd_##low << 32))

static inline void random_philox16(uint16* c0, uint16* c1, uint16* c2, uint16* c3, const ulong key) {
  uint k0 = (uint)key, k1 = (uint)(key >> 32);
  uint16 x0 = *c0, x1 = *c1, x2 = *c2, x3 = *c3;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    RANDOM_PRODUCTS(high0, low0, x0, 0xD2511F53ul);
    RANDOM_PRODUCTS(high1, low1, x2, 0xCD9E8D57ul);
    x0 = high1 ^ x1 ^ k0;
    x1 = low1;
    x2 = high0 ^ x3 ^ k1;
    x3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  *c0 = x0;
  *c1 = x1;
  *c2 = x2;
  *c3 = x3;
}

// The words of blocks b .. b + 15.
static inline void random_blocks16(uint16* words, const ulong b, const ulong seed, const ulong counter) {
  const ulong16 blocks = b + RANDOM_LANES;
  words[0] = convert_uint16(blocks);
  words[1] = convert_uint16(blocks >> 32);
  words[2] = (uint16)((uint)counter);
  words[3] = (uint16)((uint)(counter >> 32));
  random_philox16(words, words + 1, words + 2, words + 3, seed);
}

static inline void random_store16(const random_real16 v, __global real* p, const long left) {
  if (left >= 16) {
    sb_store16(v, p);
  } else {
    real padded[16];
    vstore16(v, 0, padded);
    for (int i = 0; i < (int)left; ++i) p[i] = padded[i];
  }
}

// dst = low + u * span, u a multiple of 2^-bits in [0, 1): the high bits of the element's word.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void random_uniform(ARRAY(real, dst), const long n,
                                                                            const ulong seed, const ulong counter,
                                                                            const ulong first, const real low,
                                                                            const real span, const int bits) {
  START(dst);
  const long end = SB_END((n + 3) / 4);
  const real unit = REAL_C(1.0) / (real)(1ul << bits);
  for (long b = SB_BEGIN((n + 3) / 4); b < end; b += 16) {
    uint16 words[4], ordered[4];
    random_blocks16(words, first + (ulong)b, seed, counter);
    RANDOM_IN_ORDER(ordered, words[0], words[1], words[2], words[3]);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const long i = 4 * b + 16 * k;
      if (i < n) random_store16(low + RANDOM_REAL16(ordered[k] >> (uint)(32 - bits)) * unit * span, dst + i, n - i);
    }
  }
}

// dst = mean + deviation * z (G. Box and M. Muller, 1958): words 0 and 1 of a block give its elements 0 (cosine) and 1
// (sine), words 2 and 3 its elements 2 and 3.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void random_normal(ARRAY(real, dst), const long n,
                                                                           const ulong seed, const ulong counter,
                                                                           const ulong first, const real mean,
                                                                           const real deviation) {
  START(dst);
  const long end = SB_END((n + 3) / 4);
  const real unit = REAL_C(1.0) / (real)(1ul << 32);
  for (long b = SB_BEGIN((n + 3) / 4); b < end; b += 16) {
    uint16 words[4];
    random_real16 z[4], ordered[4];
    random_blocks16(words, first + (ulong)b, seed, counter);
#pragma unroll
    for (int k = 0; k < 4; k += 2) {
      const random_real16 radius = sqrt(-2 * log(RANDOM_REAL16(words[k]) * unit + unit / 2));
      const random_real16 turn = RANDOM_REAL16(words[k + 1]) * unit * 2;
      z[k] = mean + deviation * (radius * cospi(turn));
      z[k + 1] = mean + deviation * (radius * sinpi(turn));
    }
    RANDOM_IN_ORDER(ordered, z[0], z[1], z[2], z[3]);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const long i = 4 * b + 16 * k;
      if (i < n) random_store16(ordered[k], dst + i, n - i);
    }
  }
}

// dst = the element's word >= threshold ? src * scale : 0. src [n]
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void random_dropout(ARRAY(const stored, src),
                                                                            ARRAY(stored, dst), const long n,
                                                                            const ulong seed, const ulong counter,
                                                                            const ulong first, const ulong threshold,
                                                                            const real scale) {
  START(src);
  START(dst);
  const long end = SB_END((n + 3) / 4);
  for (long b = SB_BEGIN((n + 3) / 4); b < end; b += 16) {
    uint16 words[4], ordered[4];
    random_blocks16(words, first + (ulong)b, seed, counter);
    RANDOM_IN_ORDER(ordered, words[0], words[1], words[2], words[3]);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const long i = 4 * b + 16 * k, left = n - i;
      if (left >= 16) {
        const random_real16 kept = sb_load16(src + i) * scale;
        sb_store16(select((random_real16)(0), kept, RANDOM_MASK16(ordered[k] >= (uint)threshold)), dst + i);
      } else if (left > 0) {
        uint padded[16];
        vstore16(ordered[k], 0, padded);
        for (int lane = 0; lane < (int)left; ++lane)
          STORE(padded[lane] >= (uint)threshold ? LOAD(src + i + lane) * scale : 0, dst + i + lane);
      }
    }
  }
}

#undef RANDOM_REAL16
#undef RANDOM_MASK16
#undef RANDOM_LANES
#undef RANDOM_ROW
#undef RANDOM_IN_ORDER
#undef RANDOM_PRODUCTS
