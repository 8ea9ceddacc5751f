#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <mutex>

#include "samebytes/error.h"
#include "text/utf8.h"

namespace samebytes::detail {
namespace {

struct Range {
  char32_t first, last;
};

// Letters and numbers of Unicode 16 that utf8proc 2.8 (Unicode 15) does not have.
constexpr Range kNewLetters[] = {{0x1c89, 0x1c8a},   {0xa7cb, 0xa7cd},   {0xa7da, 0xa7dc},   {0x105c0, 0x105f3},
                                 {0x10d4a, 0x10d65}, {0x10d6f, 0x10d85}, {0x10ec2, 0x10ec4}, {0x11380, 0x11389},
                                 {0x1138b, 0x1138b}, {0x1138e, 0x1138e}, {0x11390, 0x113b5}, {0x113b7, 0x113b7},
                                 {0x113d1, 0x113d1}, {0x113d3, 0x113d3}, {0x11bc0, 0x11be0}, {0x13460, 0x143fa},
                                 {0x16100, 0x1611d}, {0x16d40, 0x16d6c}, {0x18cff, 0x18cff}, {0x1e5d0, 0x1e5ed},
                                 {0x1e5f0, 0x1e5f0}, {0x2ebf0, 0x2ee5d}};

// The same of numbers.
constexpr Range kNewNumbers[] = {{0x10d40, 0x10d49}, {0x116d0, 0x116e3}, {0x11bf0, 0x11bf9}, {0x16130, 0x16139},
                                 {0x16d70, 0x16d79}, {0x1ccf0, 0x1ccf9}, {0x1e5f1, 0x1e5fa}};

// Punctuation, controls and marks that came after the tables of `tokenizers`, for which they are not.
constexpr Range kNotPunctuation[] = {{0x61d, 0x61d},     {0x9fd, 0x9fd},     {0xa76, 0xa76},     {0xc77, 0xc77},
                                     {0xc84, 0xc84},     {0x1b7d, 0x1b7e},   {0x2e43, 0x2e4f},   {0x2e52, 0x2e5d},
                                     {0x10ead, 0x10ead}, {0x10f55, 0x10f59}, {0x10f86, 0x10f89}, {0x1144b, 0x1144f},
                                     {0x1145a, 0x1145b}, {0x1145d, 0x1145d}, {0x11660, 0x1166c}, {0x116b9, 0x116b9},
                                     {0x1183b, 0x1183b}, {0x11944, 0x11946}, {0x119e2, 0x119e2}, {0x11a3f, 0x11a46},
                                     {0x11a9a, 0x11a9c}, {0x11a9e, 0x11aa2}, {0x11b00, 0x11b09}, {0x11c41, 0x11c45},
                                     {0x11c70, 0x11c71}, {0x11ef7, 0x11ef8}, {0x11f43, 0x11f4f}, {0x11fff, 0x11fff},
                                     {0x12ff1, 0x12ff2}, {0x16e97, 0x16e9a}, {0x16fe2, 0x16fe2}, {0x1e95e, 0x1e95f}};

// Format characters, likewise.
constexpr Range kNotControl[] = {{0x890, 0x891}, {0x8e2, 0x8e2}, {0x110cd, 0x110cd}, {0x13430, 0x1343f}};

// Marks without a width, likewise.
constexpr Range kNotNonspacing[] = {
    {0x7fd, 0x7fd},     {0x898, 0x89f},     {0x8ca, 0x8e1},     {0x9fe, 0x9fe},     {0xafa, 0xaff},
    {0xb55, 0xb55},     {0xc04, 0xc04},     {0xc3c, 0xc3c},     {0xd00, 0xd00},     {0xd3b, 0xd3c},
    {0xd81, 0xd81},     {0xeba, 0xeba},     {0xece, 0xece},     {0x180f, 0x180f},   {0x1885, 0x1886},
    {0x1abf, 0x1ace},   {0x1df6, 0x1dfb},   {0xa82c, 0xa82c},   {0xa8c5, 0xa8c5},   {0xa8ff, 0xa8ff},
    {0xa9bd, 0xa9bd},   {0x10d24, 0x10d27}, {0x10eab, 0x10eac}, {0x10efd, 0x10eff}, {0x10f46, 0x10f50},
    {0x10f82, 0x10f85}, {0x11070, 0x11070}, {0x11073, 0x11074}, {0x110c2, 0x110c2}, {0x111c9, 0x111c9},
    {0x111cf, 0x111cf}, {0x1123e, 0x1123e}, {0x11241, 0x11241}, {0x1133b, 0x1133b}, {0x11438, 0x1143f},
    {0x11442, 0x11444}, {0x11446, 0x11446}, {0x1145e, 0x1145e}, {0x1182f, 0x11837}, {0x11839, 0x1183a},
    {0x1193b, 0x1193c}, {0x1193e, 0x1193e}, {0x11943, 0x11943}, {0x119d4, 0x119d7}, {0x119da, 0x119db},
    {0x119e0, 0x119e0}, {0x11a01, 0x11a0a}, {0x11a33, 0x11a38}, {0x11a3b, 0x11a3e}, {0x11a47, 0x11a47},
    {0x11a51, 0x11a56}, {0x11a59, 0x11a5b}, {0x11a8a, 0x11a96}, {0x11a98, 0x11a99}, {0x11c30, 0x11c36},
    {0x11c38, 0x11c3d}, {0x11c3f, 0x11c3f}, {0x11c92, 0x11ca7}, {0x11caa, 0x11cb0}, {0x11cb2, 0x11cb3},
    {0x11cb5, 0x11cb6}, {0x11d31, 0x11d36}, {0x11d3a, 0x11d3a}, {0x11d3c, 0x11d3d}, {0x11d3f, 0x11d45},
    {0x11d47, 0x11d47}, {0x11d90, 0x11d91}, {0x11d95, 0x11d95}, {0x11d97, 0x11d97}, {0x11ef3, 0x11ef4},
    {0x11f00, 0x11f01}, {0x11f36, 0x11f3a}, {0x11f40, 0x11f40}, {0x11f42, 0x11f42}, {0x13440, 0x13440},
    {0x13447, 0x13455}, {0x16f4f, 0x16f4f}, {0x16fe4, 0x16fe4}, {0x1cf00, 0x1cf2d}, {0x1cf30, 0x1cf46},
    {0x1e000, 0x1e006}, {0x1e008, 0x1e018}, {0x1e01b, 0x1e021}, {0x1e023, 0x1e024}, {0x1e026, 0x1e02a},
    {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef}, {0x1e4ec, 0x1e4ef},
    {0x1e944, 0x1e94a}};

// Marks, likewise.
constexpr Range kNotMark[] = {
    {0x7fd, 0x7fd},     {0x898, 0x89f},     {0x8ca, 0x8d3},     {0x9fe, 0x9fe},     {0xafa, 0xaff},
    {0xb55, 0xb55},     {0xc04, 0xc04},     {0xc3c, 0xc3c},     {0xcf3, 0xcf3},     {0xd00, 0xd00},
    {0xd3b, 0xd3c},     {0xd81, 0xd81},     {0xeba, 0xeba},     {0xece, 0xece},     {0x1715, 0x1715},
    {0x180f, 0x180f},   {0x1abf, 0x1ace},   {0x1cf7, 0x1cf7},   {0x1df6, 0x1dfa},   {0xa82c, 0xa82c},
    {0xa8ff, 0xa8ff},   {0x10d24, 0x10d27}, {0x10eab, 0x10eac}, {0x10efd, 0x10eff}, {0x10f46, 0x10f50},
    {0x10f82, 0x10f85}, {0x11070, 0x11070}, {0x11073, 0x11074}, {0x110c2, 0x110c2}, {0x11145, 0x11146},
    {0x111c9, 0x111c9}, {0x111ce, 0x111cf}, {0x11241, 0x11241}, {0x1133b, 0x1133b}, {0x1145e, 0x1145e},
    {0x1182c, 0x1183a}, {0x11930, 0x11935}, {0x11937, 0x11938}, {0x1193b, 0x1193e}, {0x11940, 0x11940},
    {0x11942, 0x11943}, {0x119d1, 0x119d7}, {0x119da, 0x119e0}, {0x119e4, 0x119e4}, {0x11a01, 0x11a0a},
    {0x11a33, 0x11a39}, {0x11a3b, 0x11a3e}, {0x11a47, 0x11a47}, {0x11a51, 0x11a5b}, {0x11a8a, 0x11a99},
    {0x11d31, 0x11d36}, {0x11d3a, 0x11d3a}, {0x11d3c, 0x11d3d}, {0x11d3f, 0x11d45}, {0x11d47, 0x11d47},
    {0x11d8a, 0x11d8e}, {0x11d90, 0x11d91}, {0x11d93, 0x11d97}, {0x11ef3, 0x11ef6}, {0x11f00, 0x11f01},
    {0x11f03, 0x11f03}, {0x11f34, 0x11f3a}, {0x11f3e, 0x11f42}, {0x13440, 0x13440}, {0x13447, 0x13455},
    {0x16f4f, 0x16f4f}, {0x16f7f, 0x16f87}, {0x16fe4, 0x16fe4}, {0x16ff0, 0x16ff1}, {0x1cf00, 0x1cf2d},
    {0x1cf30, 0x1cf46}, {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef},
    {0x1e4ec, 0x1e4ef}};

// Marks that came after the tables of its normal forms, which do not move them.
constexpr Range kNotOrdered[] = {{0x7fd, 0x7fd},     {0x898, 0x89f},     {0x8ca, 0x8d3},     {0x9fe, 0x9fe},
                                 {0xc3c, 0xc3c},     {0xd3b, 0xd3c},     {0xeba, 0xeba},     {0x1715, 0x1715},
                                 {0x1abf, 0x1ace},   {0x1df6, 0x1dfa},   {0xa82c, 0xa82c},   {0x10d24, 0x10d27},
                                 {0x10eab, 0x10eac}, {0x10efd, 0x10eff}, {0x10f46, 0x10f50}, {0x10f82, 0x10f85},
                                 {0x11070, 0x11070}, {0x1133b, 0x1133b}, {0x1145e, 0x1145e}, {0x11839, 0x1183a},
                                 {0x1193d, 0x1193e}, {0x11943, 0x11943}, {0x119e0, 0x119e0}, {0x11a34, 0x11a34},
                                 {0x11a47, 0x11a47}, {0x11a99, 0x11a99}, {0x11d42, 0x11d42}, {0x11d44, 0x11d45},
                                 {0x11d97, 0x11d97}, {0x11f41, 0x11f42}, {0x16ff0, 0x16ff1}, {0x1e08f, 0x1e08f},
                                 {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef}, {0x1e4ec, 0x1e4ef}};

template <std::size_t N>
bool is_in(const Range (&ranges)[N], char32_t code) {
  const Range* found = std::partition_point(ranges, ranges + N, [&](const Range& range) { return range.last < code; });
  return found != ranges + N && found->first <= code;
}

utf8proc_category_t category_of(char32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }

CharacterClass look_up(char32_t code) {
  // White_Space is a separate property: some of the control characters and separators.
  const bool is_blank = (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0 ||
                        code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
                        code == 0x202f || code == 0x205f || code == 0x3000;
  if (is_blank) return CharacterClass::blank;
  switch (category_of(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CharacterClass::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CharacterClass::number;
    case UTF8PROC_CATEGORY_CN:
      if (is_in(kNewLetters, code)) return CharacterClass::letter;
      if (is_in(kNewNumbers, code)) return CharacterClass::number;
      return CharacterClass::other;
    default: return CharacterClass::other;
  }
}

constexpr bool is_composed(NormalForm form) { return form == NormalForm::nfc || form == NormalForm::nfkc; }
constexpr bool is_compatible(NormalForm form) { return form == NormalForm::nfkc || form == NormalForm::nfkd; }

// Compositions and decompositions that came after the tables of `tokenizers`.
bool is_new_to_forms(NormalForm form, char32_t code) {
  if (code == 0x11938) return !is_composed(form);
  return is_compatible(form) && (code == 0x32ff || (code >= 0xa7f2 && code <= 0xa7f4) || code == 0xab69 ||
                                 (code >= 0x10781 && code <= 0x107ba) || (code >= 0x1e030 && code <= 0x1e06d) ||
                                 code == 0x1f16c || (code >= 0x1fbf0 && code <= 0x1fbf9));
}

utf8proc_option_t options_of(NormalForm form) {
  int options = UTF8PROC_STABLE | (is_composed(form) ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE);
  if (is_compatible(form)) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

// Whether a character stands for itself in this form whatever is beside it, so that what is before it and what begins
// with it have their forms by themselves.
bool is_settled(NormalForm form, char32_t code) {
  if (code < 0x80 || is_new_to_forms(form, code)) return true;
  const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
  if (property->combining_class != 0) return is_in(kNotOrdered, code);
  constexpr char32_t kFirstJamo = 0x1100, kLastJamo = 0x11ff, kFirstHangul = 0xac00, kLastHangul = 0xd7a3;
  if (code >= kFirstJamo && code <= kLastJamo) return !is_composed(form);
  if (code >= kFirstHangul && code <= kLastHangul) return is_composed(form);
  // The second of a pair that has a composition.
  if (is_composed(form) && property->comb_index != UINT16_MAX && property->comb_index >= 0x8000) return false;
  if (property->decomp_seqindex == UINT16_MAX) return true;
  if (!is_compatible(form) && property->decomp_type != 0) return true;
  if (!is_composed(form)) return false;
  // It decomposes; it is settled if its parts become itself again.
  utf8proc_uint8_t text[5] = {};
  utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), text);
  utf8proc_uint8_t* whole = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(text, 0, &whole, static_cast<utf8proc_option_t>(options_of(form) | UTF8PROC_NULLTERM));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(whole, &std::free);
  return length > 0 && std::string_view(reinterpret_cast<const char*>(whole), static_cast<std::size_t>(length)) ==
                           reinterpret_cast<const char*>(text);
}

constexpr std::size_t kForms = 4;

// is_settled() of the characters below kTabled.
const std::vector<bool>& settled_table(NormalForm form) {
  static std::array<std::once_flag, kForms> flags;
  static std::array<std::vector<bool>, kForms> tables;
  const auto index = static_cast<std::size_t>(form);
  std::call_once(flags[index], [&] {
    std::vector<bool> table(kTabled);
    for (std::size_t code = 0; code < kTabled; ++code) table[code] = is_settled(form, static_cast<char32_t>(code));
    tables[index] = std::move(table);
  });
  return tables[index];
}

void append_form(NormalForm form, std::string_view text, std::string& buffer) {
  utf8proc_uint8_t* whole = nullptr;
  const utf8proc_ssize_t length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                               static_cast<utf8proc_ssize_t>(text.size()), &whole, options_of(form));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(whole, &std::free);
  if (length < 0) throw Error(std::string("tokenizer: no normal form: ") + utf8proc_errmsg(length));
  buffer.append(reinterpret_cast<const char*>(whole), static_cast<std::size_t>(length));
}

// Capitals of Unicode 16 and 17 that utf8proc 2.8 does not have.
char32_t new_lower(char32_t code) {
  if (code >= 0x10d50 && code <= 0x10d65) return code + 0x20;
  if (code >= 0x16ea0 && code <= 0x16eb8) return code + 0x1b;
  switch (code) {
    case 0x1c89:
    case 0xa7cc:
    case 0xa7ce:
    case 0xa7d2:
    case 0xa7d4:
    case 0xa7da: return code + 1;
    case 0xa7cb: return 0x264;
    case 0xa7dc: return 0x19b;
    default: return code;
  }
}

}  // namespace

const CharacterClass* class_table() {
  static const std::vector<CharacterClass> table = [] {
    std::vector<CharacterClass> classes(kTabled);
    for (std::size_t code = 0; code < kTabled; ++code) classes[code] = look_up(static_cast<char32_t>(code));
    return classes;
  }();
  return table.data();
}

CharacterClass class_of(char32_t code) {
  if (code == kNoCharacter) return CharacterClass::other;
  return code < kTabled ? class_table()[code] : look_up(code);
}

bool is_punctuation(char32_t code) {
  if (code < 0x80)
    return (code > 0x20 && code < '0') || (code > '9' && code < 'A') || (code > 'Z' && code < 'a') ||
           (code > 'z' && code < 0x7f);
  switch (category_of(code)) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return !is_in(kNotPunctuation, code);
    default: return code == 0x166d || code == 0x111c9;  // punctuation once
  }
}

bool is_nonspacing_mark(char32_t code) {
  if (code < 0x300) return false;
  if (category_of(code) == UTF8PROC_CATEGORY_MN) return !is_in(kNotNonspacing, code);
  return code == 0x1734;  // one once
}

bool is_mark(char32_t code) {
  if (code < 0x300) return false;
  switch (category_of(code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return !is_in(kNotMark, code);
    default: return code == 0x1cf2 || code == 0x1cf3;  // marks once
  }
}

bool is_control(char32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return false;
  switch (category_of(code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO: return !is_in(kNotControl, code);
    default: return false;
  }
}

bool is_word(char32_t code) {
  if (code < 0x80)
    return (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z') || code == '_';
  switch (category_of(code)) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return true;
    default: break;
  }
  // The joiners, and letters in circles and squares, which are symbols but alphabetic.
  constexpr Range kOthers[] = {{0x200c, 0x200d},   {0x24b6, 0x24e9},   {0x10d40, 0x10d49}, {0x116d0, 0x116e3},
                               {0x11bf0, 0x11bf9}, {0x16130, 0x16139}, {0x16d70, 0x16d79}, {0x1ccf0, 0x1ccf9},
                               {0x1e5f1, 0x1e5fa}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
  return class_of(code) == CharacterClass::letter || is_in(kOthers, code);
}

void append_lower(std::string& text, char32_t code) {
  constexpr char32_t kDottedI = 0x130;  // the one character with two in lower case
  if (code == kDottedI)
    text += "i\xcc\x87";
  else
    append_utf8(text, new_lower(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)))));
}

std::string_view normal_form(NormalForm form, std::string_view text, std::string& buffer) {
  if (is_ascii(text)) return text;
  const std::vector<bool>& settled = settled_table(form);
  bool is_whole = true;
  // Text before `begin` is in the buffer unless the whole text is; `start` is the last settled character.
  std::size_t begin = 0, start = 0, place = 0;
  while (place < text.size()) {
    const Character character = character_at(text, place);
    if (character.code < kTabled ? settled[character.code] : is_settled(form, character.code)) {
      start = place;
      place += character.bytes;
      continue;
    }
    // From the settled character before it to the next one.
    std::size_t end = place + character.bytes;
    while (end < text.size()) {
      const Character next = character_at(text, end);
      if (next.code < kTabled ? settled[next.code] : is_settled(form, next.code)) break;
      end += next.bytes;
    }
    if (is_whole) buffer.clear();
    is_whole = false;
    start = std::max(start, begin);
    // One that only counts as settled would not stay as it is.
    const char32_t first = character_at(text, start).code;
    if (start < place && (is_new_to_forms(form, first) || is_in(kNotOrdered, first))) start = place;
    buffer.append(text, begin, start - begin);
    append_form(form, text.substr(start, end - start), buffer);
    begin = start = place = end;
  }
  if (is_whole) return text;
  buffer.append(text, begin);
  return buffer;
}

bool is_grapheme_end(char32_t left, char32_t right, std::int32_t& state) {
  return utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(left), static_cast<utf8proc_int32_t>(right),
                                          &state) != 0;
}

}  // namespace samebytes::detail
