// The parts below a tokenizer: scanners against the expressions that they stand for, merges, Unicode.
#include <gtest/gtest.h>

#include <random>

#include "support/errors.h"
#include "text/bpe_merges.h"
#include "text/regex.h"
#include "text/unicode.h"
#include "text/utf8.h"
#include "text/word_patterns.h"

namespace samebytes::detail {
namespace {

std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> parts = {
      "a",       "B",      "the",    "'s",     "'S",     "'ll",    "'Re",    "'\u017f",    "'",          " ",
      "  ",      "\n",     "\r\n",   "\t",     "1",      "23",     "4567",   "\u0663",     "\u00bd",     "\u00e9",
      "e\u0301", "\u65e5", "\u0939", "\u094d", "\u3000", "\u00a0", "\u200b", "\U0001f600", ".",          "...",
      "-",       "_",      "\u180e", "\u2028", "\u0085", "\u0130", "$",      "\u1e9e",     "\U00020000", "\ufffd"};
  std::string text;
  for (unsigned i = random() % 12 + 1; i > 0; --i) text += parts[random() % parts.size()];
  return text;
}

TEST(WordPatterns, scan_as_their_expressions_match) {
  std::mt19937 random(5);
  for (const WordPattern pattern : {WordPattern::gpt2, WordPattern::llama3, WordPattern::qwen2}) {
    const Regex regex{std::string(regex_of(pattern))};
    EXPECT_EQ(word_pattern_of(regex_of(pattern)), pattern);
    for (int i = 0; i < 4000; ++i) {
      const std::string text = random_text(random);
      std::vector<std::string_view> scanned, matched;
      split_words(pattern, text, scanned);
      Regex::Search search(regex, text);
      while (const auto match = search.next())
        matched.push_back(std::string_view(text).substr(match->begin, match->end - match->begin));
      ASSERT_EQ(scanned, matched) << text;
    }
  }
}

TEST(BpeMerges, short_and_long_words_merge_alike) {
  // Tokens 0 to 3, and merges at random of what there is.
  std::mt19937 random(7);
  for (int table = 0; table < 20; ++table) {
    BpeMerges merges;
    std::int32_t next = 4;
    for (std::uint32_t rank = 0; rank < 40; ++rank) {
      const auto left = static_cast<std::int32_t>(random() % static_cast<unsigned>(next)),
                 right = static_cast<std::int32_t>(random() % static_cast<unsigned>(next));
      if (merges.add(left, right, rank, next)) ++next;
    }
    for (int i = 0; i < 50; ++i) {
      std::vector<std::int32_t> word;
      for (unsigned k = random() % 40 + 2; k > 0; --k) word.push_back(static_cast<std::int32_t>(random() % 4));
      // Nothing merges with token 5000, so each copy in the long word becomes what the short one becomes.
      std::vector<std::int32_t> alone = word, many;
      for (int copy = 0; copy < 30; ++copy) {
        many.insert(many.end(), word.begin(), word.end());
        many.push_back(5000);
      }
      merges.apply(alone, 0);
      merges.apply(many, 0);
      alone.push_back(5000);
      ASSERT_EQ(many.size(), 30 * alone.size());
      for (std::size_t k = 0; k < many.size(); ++k) ASSERT_EQ(many[k], alone[k % alone.size()]);
    }
  }
}

TEST(Unicode, normal_forms) {
  std::string buffer;
  const auto form = [&](NormalForm kind, std::string_view text) {
    return std::string(normal_form(kind, text, buffer));
  };
  EXPECT_EQ(form(NormalForm::nfc, "cafe\u0301 \u1112\u1161\u11ab"), "caf\u00e9 \ud55c");
  EXPECT_EQ(form(NormalForm::nfd, "caf\u00e9 \ud55c"), "cafe\u0301 \u1112\u1161\u11ab");
  EXPECT_EQ(form(NormalForm::nfkc, "\ufb01 \u2460 \u00b2 \uff41\u0301"), "fi 1 2 \u00e1");
  EXPECT_EQ(form(NormalForm::nfkd, "\u00bd\u00e5"), "1\u20442a\u030a");
  EXPECT_EQ(form(NormalForm::nfc, "a\u0307\u0323"), form(NormalForm::nfc, "a\u0323\u0307"));
  EXPECT_EQ(form(NormalForm::nfd, "a\u0345\u0301"), "a\u0301\u0345");
  const std::string_view settled = "caf\u00e9 \u65e5\u672c";
  EXPECT_EQ(normal_form(NormalForm::nfc, settled, buffer).data(), settled.data());
}

TEST(Unicode, lower_case_and_kinds) {
  std::string text;
  for (const char32_t code : {U'\u0130', U'\u00c4', U'\u03a3', U'a'}) append_lower(text, code);
  EXPECT_EQ(text, "i\u0307\u00e4\u03c3a");
  EXPECT_TRUE(is_punctuation('~') && is_punctuation(0x3002) && !is_punctuation('a') && !is_punctuation(0x20ac));
  EXPECT_TRUE(is_control(0x200b) && is_control(0x7f) && !is_control('\n'));
  EXPECT_TRUE(is_nonspacing_mark(0x301) && !is_nonspacing_mark(0x903) && is_mark(0x903));
  EXPECT_TRUE(is_word('_') && is_word(0x24b6) && !is_word(0xb2) && is_word(0x663));
  EXPECT_EQ(class_of(0x2ebf0), CharacterClass::letter);  // of Unicode 15.1
}

TEST(Regex, has_the_syntax_of_tokenizer_files) {
  const auto found = [](const std::string& pattern, std::string_view text) {
    const Regex regex(pattern);
    Regex::Search search(regex, text);
    std::vector<std::string> matches;
    while (const auto match = search.next()) matches.emplace_back(text.substr(match->begin, match->end - match->begin));
    return matches;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(found("\\s+", "a \u180e b\u0085"), (Texts{" ", " ", "\u0085"}));
  EXPECT_EQ(found("[^\\s\\p{L}]+", "a ..b"), (Texts{".."}));
  EXPECT_EQ(found("\\h+", "xAf0 g"), (Texts{"Af0"}));
  EXPECT_EQ(found("(?=b)", "abab"), (Texts{"", ""}));
  EXPECT_EQ(found("\\w+", "e\u0301_ -"), (Texts{"e\u0301_"}));
  EXPECT_ERROR(Regex("[a"), ArgumentError,
               "regular expression: '[a' is none that PCRE2 knows: missing terminating ] for character class");
}

}  // namespace
}  // namespace samebytes::detail
