// UTF-8, and the character classes that tokenizers need, from utf8proc's tables.
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

// The character at `place`. Requires: place < text.size().
Character character_at(std::string_view text, std::size_t place);
void append_utf8(std::string& text, char32_t code);

enum class CharacterClass : char { letter, number, blank, other };
// \p{L}, \p{N}, \s (Unicode's White_Space), or none of them.
CharacterClass class_of(char32_t code);

}  // namespace samebytes::detail
