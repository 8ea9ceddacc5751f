// Built instead of utf8.cpp where SAMEBYTES_TEXT is off.
#include "core/missing_part.h"
#include "data/utf8.h"

namespace samebytes::detail {
namespace {

[[noreturn]] void refuse() {
  throw_missing("text", "tables of Unicode's characters", "SAMEBYTES_TEXT", "package libutf8proc-dev");
}

}  // namespace

Character character_at(std::string_view, std::size_t) { refuse(); }
void append_utf8(std::string&, char32_t) { refuse(); }
CharacterClass class_of(char32_t) { refuse(); }

}  // namespace samebytes::detail
