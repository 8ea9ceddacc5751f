// Built instead of unicode.cpp and regex.cpp where SAMEBYTES_TEXT is off.
#include "core/missing_part.h"
#include "text/regex.h"
#include "text/unicode.h"

namespace samebytes::detail {
namespace {

[[noreturn]] void refuse() {
  throw_missing("text", "tables of Unicode's characters", "SAMEBYTES_TEXT", "packages libutf8proc-dev, libpcre2-dev");
}

}  // namespace

CharacterClass class_of(char32_t) { refuse(); }
const CharacterClass* class_table() { refuse(); }
bool is_punctuation(char32_t) { refuse(); }
bool is_mark(char32_t) { refuse(); }
bool is_nonspacing_mark(char32_t) { refuse(); }
bool is_control(char32_t) { refuse(); }
bool is_word(char32_t) { refuse(); }
void append_lower(std::string&, char32_t) { refuse(); }
std::string_view normal_form(NormalForm, std::string_view, std::string&) { refuse(); }
bool is_grapheme_end(char32_t, char32_t, std::int32_t&) { refuse(); }

struct Regex::Code {};
Regex::Regex(const std::string&) { refuse(); }
Regex::Search::Search(const Regex& regex, std::string_view) : regex_(regex), data_(nullptr) { refuse(); }
Regex::Search::~Search() { data_ = nullptr; }
std::optional<Regex::Match> Regex::Search::next() { refuse(); }

}  // namespace samebytes::detail
