// Random numbers and dropout of small arrays on the host; ops/host.h says what they promise. Words, bits and roundings
// are those of cl/cpu/random.cl.
#include <algorithm>
#include <cstdint>

#include "ops/native.h"

namespace samebytes::detail {
namespace {

constexpr int kBlocks = 16, kWords = 4 * kBlocks;
static_assert(kWords == HostStream::kUnit);

// The words of kBlocks blocks of Philox4x32-10 (samebytes/random.h), in the order of their elements. Written here
// again, because a function of that header would be one for all levels (ops/native.h), and for vectors of blocks.
void words_of(const HostStream& stream, std::uint64_t block, std::uint32_t* words) {
  std::uint32_t x0[kBlocks], x1[kBlocks], x2[kBlocks], x3[kBlocks];
  for (int i = 0; i < kBlocks; ++i) {
    const std::uint64_t at = stream.first + block + static_cast<std::uint64_t>(i);
    x0[i] = static_cast<std::uint32_t>(at);
    x1[i] = static_cast<std::uint32_t>(at >> 32);
    x2[i] = static_cast<std::uint32_t>(stream.counter);
    x3[i] = static_cast<std::uint32_t>(stream.counter >> 32);
  }
  auto k0 = static_cast<std::uint32_t>(stream.seed), k1 = static_cast<std::uint32_t>(stream.seed >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
    for (int i = 0; i < kBlocks; ++i) {
      const std::uint64_t first = std::uint64_t{0xD2511F53u} * x0[i], second = std::uint64_t{0xCD9E8D57u} * x2[i];
      x0[i] = static_cast<std::uint32_t>(second >> 32) ^ x1[i] ^ k0;
      x1[i] = static_cast<std::uint32_t>(second);
      x2[i] = static_cast<std::uint32_t>(first >> 32) ^ x3[i] ^ k1;
      x3[i] = static_cast<std::uint32_t>(first);
    }
  for (int i = 0; i < kBlocks; ++i) {
    words[4 * i] = x0[i];
    words[4 * i + 1] = x1[i];
    words[4 * i + 2] = x2[i];
    words[4 * i + 3] = x3[i];
  }
}

// Calls each(words, first element, count) for each unit.
template <class Each>
void for_words(const HostStream& stream, std::int64_t n, std::int64_t begin, std::int64_t end, Each each) {
  std::uint32_t words[kWords];
  for (std::int64_t unit = begin; unit < end; ++unit) {
    words_of(stream, static_cast<std::uint64_t>(unit * kBlocks), words);
    each(words, unit * kWords, std::min<std::int64_t>(kWords, n - unit * kWords));
  }
}

}  // namespace

template <HostLevel L, class T>
void host_uniform_at(const HostStream& stream, std::int64_t n, int bits, T low, T span, T* dst, std::int64_t begin,
                     std::int64_t end) {
  const T unit = T{1} / static_cast<T>(std::uint64_t{1} << bits);
  for_words(stream, n, begin, end, [&](const std::uint32_t* words, std::int64_t first, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
      dst[first + i] = low + static_cast<T>(words[i] >> (32 - bits)) * unit * span;
  });
}
template void host_uniform_at<kThisLevel, float>(const HostStream&, std::int64_t, int, float, float, float*,
                                                 std::int64_t, std::int64_t);
template void host_uniform_at<kThisLevel, double>(const HostStream&, std::int64_t, int, double, double, double*,
                                                  std::int64_t, std::int64_t);

template <HostLevel L, class T>
void host_dropout_at(const HostStream& stream, std::int64_t n, std::uint32_t threshold, T scale, const T* src, T* dst,
                     std::int64_t begin, std::int64_t end) {
  for_words(stream, n, begin, end, [&](const std::uint32_t* words, std::int64_t first, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) dst[first + i] = words[i] >= threshold ? src[first + i] * scale : T{0};
  });
}
template void host_dropout_at<kThisLevel, float>(const HostStream&, std::int64_t, std::uint32_t, float, const float*,
                                                 float*, std::int64_t, std::int64_t);
template void host_dropout_at<kThisLevel, double>(const HostStream&, std::int64_t, std::uint32_t, double, const double*,
                                                  double*, std::int64_t, std::int64_t);

}  // namespace samebytes::detail
