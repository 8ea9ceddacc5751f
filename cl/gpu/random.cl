// Counter-based random numbers: Philox4x32-10 (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Block b of a
// stream is philox(counter {b low, b high, counter low, counter high}, key {seed low, seed high}), where b counts from `first`, which
// says what the numbers are for: samebytes/random.h's domain << 56. Element i takes word i % 4 of block first + i / 4.
// dst [n]; geometry: over_elements((n + 3) / 4); one block, four elements, per work-item.
// Words and bits are the same on every device; normal differs by the rounding of log, sqrt and cospi.
// Program: core

static inline uint4 random_philox(uint4 c, const ulong key) {
  uint k0 = (uint)key, k1 = (uint)(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint high0 = mul_hi(c.x, 0xD2511F53u), low0 = c.x * 0xD2511F53u;
    const uint high1 = mul_hi(c.z, 0xCD9E8D57u), low1 = c.z * 0xCD9E8D57u;
    c = (uint4)(high1 ^ c.y ^ k0, low1, high0 ^ c.w ^ k1, low0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

static inline void random_block(uint *words, const ulong b, const ulong seed, const ulong counter) {
  const uint4 w = random_philox((uint4)((uint)b, (uint)(b >> 32), (uint)counter, (uint)(counter >> 32)), seed);
  words[0] = w.x;
  words[1] = w.y;
  words[2] = w.z;
  words[3] = w.w;
}

// dst = low + u * span, u a multiple of 2^-bits in [0, 1): the high bits of the element's word.
__kernel void random_uniform(ARRAY(real, dst), const long n, const ulong seed, const ulong counter,
                             const ulong first, const real low, const real span, const int bits) {
  START(dst);
  const long end = SB_END((n + 3) / 4);
  const real unit = REAL_C(1.0) / (real)(1ul << bits);
  for (long b = SB_BEGIN((n + 3) / 4); b < end; ++b) {
    uint words[4];
    random_block(words, first + (ulong)b, seed, counter);
    for (int k = 0; k < 4 && 4 * b + k < n; ++k) dst[4 * b + k] = low + (real)(words[k] >> (32 - bits)) * unit * span;
  }
}

// dst = mean + deviation * z (G. Box and M. Muller, 1958): words 0 and 1 of a block give its elements 0 (cosine) and 1 (sine), words
// 2 and 3 its elements 2 and 3.
__kernel void random_normal(ARRAY(real, dst), const long n, const ulong seed, const ulong counter,
                            const ulong first, const real mean, const real deviation) {
  START(dst);
  const long end = SB_END((n + 3) / 4);
  const real unit = REAL_C(1.0) / (real)(1ul << 32);
  for (long b = SB_BEGIN((n + 3) / 4); b < end; ++b) {
    uint words[4];
    random_block(words, first + (ulong)b, seed, counter);
    for (int k = 0; k < 4 && 4 * b + k < n; ++k) {
      const real radius = sqrt(-2 * log((real)words[k / 2 * 2] * unit + unit / 2));
      const real turn = (real)words[k / 2 * 2 + 1] * unit * 2;
      dst[4 * b + k] = mean + deviation * (radius * (k % 2 == 0 ? cospi(turn) : sinpi(turn)));
    }
  }
}

// dst = the element's word >= threshold ? src * scale : 0. src [n]
__kernel void random_dropout(ARRAY(const stored, src), ARRAY(stored, dst), const long n, const ulong seed,
                             const ulong counter, const ulong first, const ulong threshold, const real scale) {
  START(src);
  START(dst);
  const long end = SB_END((n + 3) / 4);
  for (long b = SB_BEGIN((n + 3) / 4); b < end; ++b) {
    uint words[4];
    random_block(words, first + (ulong)b, seed, counter);
    for (int k = 0; k < 4 && 4 * b + k < n; ++k)
      STORE(words[k] >= (uint)threshold ? LOAD(src + 4 * b + k) * scale : 0, dst + 4 * b + k);
  }
}
