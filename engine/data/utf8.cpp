#include "data/utf8.h"

#include <utf8proc.h>

namespace samebytes::detail {

Character character_at(std::string_view text, std::size_t place) {
  utf8proc_int32_t code = 0;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data() + place);
  const utf8proc_ssize_t length = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - place), &code);
  if (length <= 0) return {};
  return {static_cast<char32_t>(code), static_cast<std::size_t>(length)};
}

void append_utf8(std::string& text, char32_t code) {
  constexpr std::size_t kMost = 4;
  utf8proc_uint8_t bytes[kMost];
  const utf8proc_ssize_t length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
}

CharacterClass class_of(char32_t code) {
  if (code == kNoCharacter) return CharacterClass::other;
  // White_Space is a separate property: some of the control characters and separators.
  const bool is_blank = (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0 ||
                        code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
                        code == 0x202f || code == 0x205f || code == 0x3000;
  if (is_blank) return CharacterClass::blank;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CharacterClass::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CharacterClass::number;
    default: return CharacterClass::other;
  }
}

}  // namespace samebytes::detail
