// What Unicode says about characters: the properties that tokenizers need, and the four normal forms. From utf8proc's
// tables, with short lists of what the Rust library `tokenizers` sees otherwise, so that ids are the same.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace samebytes::detail {

enum class CharacterClass : std::uint8_t { letter, number, blank, other };
// \p{L}, \p{N}, \s (Unicode's White_Space), or none of them; kNoCharacter is `other`.
CharacterClass class_of(char32_t code);

// class_of() of all characters below kTabled, for scanners.
inline constexpr std::size_t kTabled = 0x20000;
const CharacterClass* class_table();

inline bool is_blank(char32_t code) { return class_of(code) == CharacterClass::blank; }
bool is_punctuation(char32_t code);      // ASCII's, and the categories P
bool is_mark(char32_t code);             // Mn, Mc, Me
bool is_nonspacing_mark(char32_t code);  // Mn
bool is_control(char32_t code);          // Cc without tab and line ends, Cf, Co
bool is_word(char32_t code);             // \w: letters, marks, decimal and letter numbers, connectors
void append_lower(std::string& text, char32_t code);

enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };
// The text itself, or `buffer` with its normal form. Requires: text in UTF-8.
std::string_view normal_form(NormalForm form, std::string_view text, std::string& buffer);

// Whether a grapheme (a character as a reader sees it) ends between two characters; `state` is 0 at first.
bool is_grapheme_end(char32_t left, char32_t right, std::int32_t& state);

}  // namespace samebytes::detail
