// What the flat tables of the tokenizers share: a hash of short texts and of numbers, and sizes that keep a table at
// most half full.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace samebytes::detail {

inline std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  a ^= b * 0x9e3779b97f4a7c15u;
  a = (a ^ a >> 32) * 0xd6e8feb86659fd93u;
  return a ^ a >> 29;
}

inline std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = text.size(), word = 0;
  const char* place = text.data();
  std::size_t left = text.size();
  for (; left >= sizeof word; left -= sizeof word, place += sizeof word) {
    std::memcpy(&word, place, sizeof word);
    hash = mixed(word, hash);
  }
  word = 0;
  for (std::size_t i = 0; i < left; ++i) word = word << 8 | static_cast<unsigned char>(place[i]);
  return mixed(word, hash);
}

inline std::size_t slots_for(std::size_t entries) { return std::bit_ceil(2 * entries + 2); }

}  // namespace samebytes::detail
