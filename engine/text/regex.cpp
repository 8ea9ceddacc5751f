#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdint>
#include <new>

#include "samebytes/error.h"

namespace samebytes::detail {
namespace {

constexpr std::uint32_t kMostSteps = 10'000'000;  // of one match
constexpr std::uint32_t kMostHeapKibibytes = 64 << 10;
constexpr std::uint32_t kMostParentheses = 100;
constexpr std::size_t kMostPattern = 1 << 16;

// PCRE2's \s has one character more than Unicode's White_Space, its \w lacks marks, and its \h are blanks where
// Oniguruma has hexadecimal digits.
std::string translated(std::string_view pattern) {
  constexpr std::string_view kBlanks =
      "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
  constexpr std::string_view kWord = "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}";
  constexpr std::string_view kHexadecimal = "0-9a-fA-F";
  std::string result;
  int depth = 0;  // of brackets
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c != '\\' || i + 1 == pattern.size()) {
      if (c == '[') ++depth;
      if (c == ']' && depth > 0) --depth;
      result += c;
      continue;
    }
    const char kind = pattern[++i];
    const std::string_view set = kind == 's' || kind == 'S'   ? kBlanks
                                 : kind == 'w' || kind == 'W' ? kWord
                                 : kind == 'h' || kind == 'H' ? kHexadecimal
                                                              : std::string_view();
    const bool is_negated = kind == 'S' || kind == 'W' || kind == 'H';
    if (set.empty() || (is_negated && depth > 0))
      (result += '\\') += kind;
    else if (depth > 0)
      result += set;
    else
      ((result += is_negated ? "[^" : "[") += set) += ']';
  }
  return result;
}

std::string text_of(int error) {
  constexpr std::size_t kMostText = 256;
  PCRE2_UCHAR text[kMostText] = {};
  pcre2_get_error_message(error, text, kMostText);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;
  pcre2_match_context* context = nullptr;
  ~Code() {
    pcre2_match_context_free(context);
    pcre2_code_free(code);
  }
};

Regex::Regex(const std::string& pattern) {
  if (pattern.size() > kMostPattern)
    throw ArgumentError("regular expression: expected at most " + std::to_string(kMostPattern) + " bytes, got " +
                        std::to_string(pattern.size()));
  const auto code = std::make_shared<Code>();
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> options(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  code->context = pcre2_match_context_create(nullptr);
  if (!options || code->context == nullptr) throw std::bad_alloc();
  pcre2_set_parens_nest_limit(options.get(), kMostParentheses);
  pcre2_set_match_limit(code->context, kMostSteps);
  pcre2_set_heap_limit(code->context, kMostHeapKibibytes);
  const std::string text = translated(pattern);
  int error = 0;
  PCRE2_SIZE place = 0;
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_ALLOW_EMPTY_CLASS, &error, &place,
                             options.get());
  if (code->code == nullptr)
    throw ArgumentError("regular expression: '" + pattern + "' is none that PCRE2 knows: " + text_of(error));
  // Without machine code for this CPU the interpreter runs it.
  pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE);
  code_ = code;
}

Regex::Search::Search(const Regex& regex, std::string_view text)
    : regex_(regex), text_(text), data_(pcre2_match_data_create(1, nullptr)) {
  if (data_ == nullptr) throw std::bad_alloc();
}

Regex::Search::~Search() { pcre2_match_data_free(static_cast<pcre2_match_data*>(data_)); }

std::optional<Regex::Match> Regex::Search::next() {
  auto* data = static_cast<pcre2_match_data*>(data_);
  while (place_ <= text_.size()) {
    const std::uint32_t options = PCRE2_NO_UTF_CHECK | (is_empty_allowed_ ? 0 : PCRE2_NOTEMPTY_ATSTART);
    const auto subject = reinterpret_cast<PCRE2_SPTR>(text_.data());
    int count = pcre2_match(regex_.code_->code, subject, text_.size(), place_, options, data, regex_.code_->context);
    if (count == PCRE2_ERROR_JIT_STACKLIMIT)
      count = pcre2_match(regex_.code_->code, subject, text_.size(), place_, options | PCRE2_NO_JIT, data,
                          regex_.code_->context);
    if (count == PCRE2_ERROR_NOMATCH) return std::nullopt;
    if (count < 0)
      throw Error("tokenizer: a pattern gave up at byte " + std::to_string(place_) + " of a text: " + text_of(count));
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data);
    // \K in a look-ahead may put the begin behind the end.
    const Match match{ends[0], ends[1]};
    if (match.begin > match.end || match.end < place_) throw Error("tokenizer: a pattern matches backwards");
    place_ = match.end;
    is_empty_allowed_ = match.begin != match.end;
    return match;
  }
  return std::nullopt;
}

}  // namespace samebytes::detail
