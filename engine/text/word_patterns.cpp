#include "text/word_patterns.h"

#include <array>
#include <cstdint>

#include "text/unicode.h"
#include "text/utf8.h"

namespace samebytes::detail {
namespace {

using Class = CharacterClass;

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt2Grouped = R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text), table_(class_table()) {}

  bool is_end(std::size_t place) const { return place >= text_.size(); }
  // The class of the character at `place`, and where the next one begins. Requires: not the end.
  Class at(std::size_t place, std::size_t& next) const {
    const auto byte = static_cast<unsigned char>(text_[place]);
    if (byte < 0x80) {
      next = place + 1;
      return table_[byte];
    }
    const Character character = character_at(text_, place);
    next = place + character.bytes;
    return character.code < kTabled ? table_[character.code] : class_of(character.code);
  }
  // Behind the run of characters of this class that begins at `place`.
  std::size_t behind(std::size_t place, Class wanted) const {
    std::size_t next = 0;
    while (!is_end(place) && at(place, next) == wanted) place = next;
    return place;
  }
  bool is_line_end(std::size_t place) const { return !is_end(place) && (text_[place] == '\n' || text_[place] == '\r'); }

  // Behind a run of blanks that begins at `place`: the last blank before a word belongs to the word, unless it is
  // alone. `line_end` is behind the last line end in the run, or `place`.
  std::size_t behind_blanks(std::size_t place, std::size_t& line_end) const {
    std::size_t last = place, end = place, next = 0;
    line_end = place;
    while (!is_end(end) && at(end, next) == Class::blank) {
      if (is_line_end(end)) line_end = next;
      last = end;
      end = next;
    }
    return is_end(end) || last == place ? end : last;
  }

  // The length of 's, 't, 're, 've, 'm, 'll, 'd at `place`; 0: none of them.
  std::size_t contraction(std::size_t place, bool is_any_case) const {
    if (text_[place] != '\'' || is_end(place + 1)) return 0;
    const auto letter = [&](std::size_t at) -> char {
      if (is_end(at)) return 0;
      const char c = text_[at];
      return is_any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    };
    const char first = letter(place + 1), second = letter(place + 2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    if (second == 'e' && (first == 'r' || first == 'v')) return 3;
    if (second == 'l' && first == 'l') return 3;
    // The long s is an s in any case.
    return is_any_case && text_.substr(place + 1).starts_with("\xc5\xbf") ? 3 : 0;
  }

 private:
  std::string_view text_;
  const Class* table_;
};

std::size_t end_of_gpt2(const Scanner& scan, std::string_view text, std::size_t place) {
  if (const std::size_t length = scan.contraction(place, false); length > 0) return place + length;
  const std::size_t begin = text[place] == ' ' ? place + 1 : place;
  std::size_t next = 0, line_end = 0;
  const Class first = scan.is_end(begin) ? Class::blank : scan.at(begin, next);
  return first != Class::blank ? scan.behind(next, first) : scan.behind_blanks(place, line_end);
}

std::size_t end_of_llama3(const Scanner& scan, std::string_view text, std::size_t place, int digits) {
  std::size_t next = 0, second = 0;
  const Class first = scan.at(place, next);
  if (first == Class::letter) return scan.behind(next, Class::letter);
  if (const std::size_t length = scan.contraction(place, true); length > 0) return place + length;
  if (first == Class::number) {
    for (int i = 1; i < digits && !scan.is_end(next) && scan.at(next, second) == Class::number; ++i) next = second;
    return next;
  }
  // One character that is no line end before letters belongs to them.
  if (!scan.is_line_end(place) && !scan.is_end(next) && scan.at(next, second) == Class::letter)
    return scan.behind(second, Class::letter);
  const std::size_t begin = text[place] == ' ' ? next : place;
  if (!scan.is_end(begin) && scan.at(begin, second) == Class::other) {
    std::size_t end = scan.behind(second, Class::other);
    while (scan.is_line_end(end)) ++end;
    return end;
  }
  std::size_t line_end = place;
  const std::size_t end = scan.behind_blanks(place, line_end);
  return line_end > place ? line_end : end;
}

}  // namespace

std::optional<WordPattern> word_pattern_of(std::string_view regex) {
  if (regex == kGpt2 || regex == kGpt2Grouped) return WordPattern::gpt2;
  if (regex == kLlama3) return WordPattern::llama3;
  if (regex == kQwen2) return WordPattern::qwen2;
  return std::nullopt;
}

std::string_view regex_of(WordPattern pattern) {
  return pattern == WordPattern::gpt2 ? kGpt2 : pattern == WordPattern::llama3 ? kLlama3 : kQwen2;
}

void split_words(WordPattern pattern, std::string_view text, std::vector<std::string_view>& words) {
  const Scanner scan(text);
  const int digits = pattern == WordPattern::llama3 ? 3 : 1;
  for (std::size_t place = 0; place < text.size();) {
    const std::size_t end =
        pattern == WordPattern::gpt2 ? end_of_gpt2(scan, text, place) : end_of_llama3(scan, text, place, digits);
    words.push_back(text.substr(place, end - place));
    place = end;
  }
}

}  // namespace samebytes::detail
