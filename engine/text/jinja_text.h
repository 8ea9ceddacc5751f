// Texts as Python's str has them: characters, blanks, and letters of ASCII in another case.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace samebytes::detail::jinja {

// A character each; bytes that are no UTF-8 one each.
inline std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    std::size_t length = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    length = std::min(length, text.size() - i);
    result.emplace_back(text.substr(i, length));
    i += length;
  }
  return result;
}

inline bool is_blank_character(std::string_view c) {
  if (c.size() == 1) return c[0] == ' ' || (c[0] >= '\t' && c[0] <= '\r') || (c[0] >= '\x1c' && c[0] <= '\x1f');
  for (const char* blank :
       {"\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007",
        "\u2008", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"})
    if (c == blank) return true;
  return false;
}

inline char lower_of(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
inline char upper_of(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

}  // namespace samebytes::detail::jinja
