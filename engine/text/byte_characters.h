// GPT-2's characters for bytes: the byte's own character if it is printable, otherwise the next one from U+0100 on.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "text/utf8.h"

namespace samebytes::detail {

inline const std::array<std::string, 256>& byte_characters() {
  static const std::array<std::string, 256> characters = [] {
    std::array<std::string, 256> made;
    char32_t next = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool is_printable =
          (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
      append_utf8(made[byte], is_printable ? byte : next++);
    }
    return made;
  }();
  return characters;
}

// The byte that a character stands for.
inline std::optional<unsigned char> byte_of_character(char32_t code) {
  static const std::array<int, 512> bytes = [] {
    std::array<int, 512> made;
    made.fill(-1);
    for (unsigned byte = 0; byte < 256; ++byte)
      made[character_at(byte_characters()[byte], 0).code] = static_cast<int>(byte);
    return made;
  }();
  if (code >= bytes.size() || bytes[code] < 0) return std::nullopt;
  return static_cast<unsigned char>(bytes[code]);
}

// The bytes of a token that is written so; none if it has other characters (special tokens may).
inline std::optional<std::string> bytes_of_token(std::string_view token) {
  std::string result;
  for (std::size_t place = 0; place < token.size();) {
    const Character character = character_at(token, place);
    const std::optional<unsigned char> byte = byte_of_character(character.code);
    if (!byte) return std::nullopt;
    result += static_cast<char>(*byte);
    place += character.bytes;
  }
  return result;
}

}  // namespace samebytes::detail
