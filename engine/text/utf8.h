// UTF-8 by itself: characters of bytes that may be none, and texts with broken ones replaced. What Unicode says about a
// character is in text/unicode.h.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace samebytes::detail {

inline constexpr char32_t kNoCharacter = 0xffffffff;

struct Character {
  char32_t code = kNoCharacter;  // kNoCharacter: the byte is not UTF-8
  std::size_t bytes = 1;
};

// The character at `place` (Unicode's table 3-7: no surrogate, none written longer than it has to be). Requires: place
// < text.size().
inline Character character_at(std::string_view text, std::size_t place) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[place + i]); };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  const std::size_t left = text.size() - place;
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xc2 || left < 2 || !follows(1)) return {};
  if (first < 0xe0) return {(first & 0x1fu) << 6 | (byte(1) & 0x3fu), 2};
  if (first < 0xf0) {
    if (left < 3 || !follows(2) || (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f)) return {};
    return {(first & 0xfu) << 12 | (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu), 3};
  }
  if (first > 0xf4 || left < 4 || !follows(2) || !follows(3) || (first == 0xf0 && byte(1) < 0x90) ||
      (first == 0xf4 && byte(1) > 0x8f))
    return {};
  return {(first & 7u) << 18 | (byte(1) & 0x3fu) << 12 | (byte(2) & 0x3fu) << 6 | (byte(3) & 0x3fu), 4};
}

// The bytes of a character by the first of them. Requires: text in UTF-8.
inline std::size_t bytes_of_first(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

void append_utf8(std::string& text, char32_t code);

// The text itself, or a copy in `buffer` where it has bytes that are no UTF-8: U+FFFD stands for each longest run of
// bytes that begins a character, as in Python's decode(errors="replace"), and for each other byte.
std::string_view repaired_utf8(std::string_view text, std::string& buffer);

bool is_ascii(std::string_view text);

}  // namespace samebytes::detail
