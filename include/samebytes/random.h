// Counter-based random numbers for host code: Philox4x32-10 (J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011, section 4.3 and table 2). A number is a function of (key, counter), so the
// same sample of the same epoch gets the same numbers in any thread, and repeating it needs no stored state. Random
// draws from one such sequence; a value type, not to be shared between threads.
// Every counter contains the purpose of the numbers (RandomDomain), so two uses never get the same numbers, even with
// equal seeds.
#pragma once

#include <array>
#include <cstdint>

namespace samebytes {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// Four independent 32-bit words for one counter.
constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  constexpr std::uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// The purpose of random numbers. Its value is part of every counter here and in cl/*/random.cl; add new purposes at the
// end.
enum class RandomDomain : std::uint8_t {
  arrays,          // uniform() and normal(), array.h
  initialisation,  // initial values of parameters
  dropout,
  rounding,      // stochastic rounding
  sampling,      // categorical() and multinomial()
  generation,    // tokens that models.h draws
  host,          // Random in the user's code
  augmentation,  // a loader's transforms
  preparation,   // data::transformed()
  collation,     // a collate: mixup, views
  order,         // order of samples: shuffling and all samplers
  split,         // assignment of samples to folds
  synthesis,     // generated data sets: transits
};

// The counter of block `place` (below 2^56) of a domain: {place low, domain << 24 | place high, third, fourth}.
constexpr PhiloxCounter random_counter(RandomDomain domain, std::uint64_t place, std::uint32_t third,
                                       std::uint32_t fourth) {
  constexpr std::uint64_t kMask = (std::uint64_t{1} << 56) - 1;
  place = (place & kMask) | static_cast<std::uint64_t>(domain) << 56;
  return {static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32), third, fourth};
}

// Identifies one sequence of random numbers: the consumer (lane), the sample (index), the epoch and the seed.
struct SequenceKey {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;  // the low 32 bits matter
  std::int64_t index = 0;  // the low 56 bits matter
  std::uint32_t lane = 0;  // below 65 536; distinguishes the consumers of one sample
  RandomDomain domain = RandomDomain::host;
};

class Random {
 public:
  explicit Random(const SequenceKey& key)
      : counter_(random_counter(key.domain, static_cast<std::uint64_t>(key.index),
                                static_cast<std::uint32_t>(key.epoch), key.lane << 16)),
        key_{static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)} {}

  std::uint32_t bits() {
    if (used_ == 4) {
      words_ = philox4x32(counter_, key_);
      ++counter_[3];  // 65 536 blocks of four before the next lane begins
      used_ = 0;
    }
    return words_[used_++];
  }
  // In [0, 1), a multiple of 2^-24.
  float uniform() { return static_cast<float>(bits() >> 8) * 0x1p-24f; }
  // In [0, count), uniform to within count / 2^32. Requires: count > 0.
  std::uint32_t below(std::uint32_t count) { return static_cast<std::uint32_t>((std::uint64_t{bits()} * count) >> 32); }
  // Mean 0, deviation 1 (Box and Muller, 1958).
  float normal();

 private:
  PhiloxCounter counter_;
  PhiloxKey key_;
  PhiloxCounter words_{};
  unsigned used_ = 4;
};

}  // namespace samebytes
