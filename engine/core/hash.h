// 128-bit mixing for structural keys: plans are found by it, so collisions must not happen in practice.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace samebytes::detail {

struct Key128 {
  std::uint64_t a = 0x9e3779b97f4a7c15ull;
  std::uint64_t b = 0xc2b2ae3d27d4eb4full;
  friend bool operator==(const Key128& x, const Key128& y) { return x.a == y.a && x.b == y.b; }
};

class Hasher {
 public:
  void add(std::uint64_t v) {
    key_.a = mix(key_.a ^ v) + 0x9e3779b97f4a7c15ull;
    key_.b = mix(key_.b + v * 0xff51afd7ed558ccdull) ^ (key_.a >> 7);
  }
  void add(double v) {
    std::uint64_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    add(bits);
  }
  void add(std::string_view text) {
    for (char c : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
    add(static_cast<std::uint64_t>(text.size()));
  }
  const Key128& key() const { return key_; }

 private:
  static std::uint64_t mix(std::uint64_t x) {  // the finaliser of MurmurHash3
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
  }
  Key128 key_;
};

struct Key128Hash {
  std::size_t operator()(const Key128& key) const { return key.a; }
};

}  // namespace samebytes::detail
