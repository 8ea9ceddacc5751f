#include "samebytes/data/text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "support/errors.h"
#include "support/files.h"
#include "support/io_errors.h"
#include "support/samples.h"

namespace samebytes::data {
namespace {

using testing::expect_io_error;
using testing::put;
using testing::Sample;
using testing::TemporaryFolder;
using namespace std::string_literals;

using Ints = std::vector<std::int32_t>;
using Words = std::vector<std::string_view>;

TEST(CharTokenizer, numbers_characters_by_code_point_and_comes_back) {
  const CharTokenizer tokenizer = CharTokenizer::from_text("hello, wörld €\n");
  EXPECT_EQ(tokenizer.size(), 12);  // \n, blank, comma, d e h l o r w, ö, €
  EXPECT_EQ(tokenizer.encode("\n h€ö"), (Ints{0, 1, 5, 11, 10}));
  EXPECT_EQ(tokenizer.decode(Ints{5, 10, 11, 0}), "hö€\n");
  EXPECT_TRUE(tokenizer.encode("").empty());
  EXPECT_EQ(CharTokenizer::from_text("").size(), 0);
}

TEST(CharTokenizer, saves_and_loads) {
  const TemporaryFolder folder;
  const std::string path = folder / "characters.json";
  const std::string text = "\"quoted\\\" and \0 and \U0001f600\t"s;
  const CharTokenizer tokenizer = CharTokenizer::from_text(text);
  tokenizer.save(path);
  const CharTokenizer back = CharTokenizer::load(path);
  EXPECT_EQ(back.size(), tokenizer.size());
  EXPECT_EQ(back.encode(text), tokenizer.encode(text));
  EXPECT_EQ(back.decode(tokenizer.encode(text)), text);
}

TEST(CharTokenizer, names_what_it_does_not_know) {
  const CharTokenizer tokenizer = CharTokenizer::from_text("ab");
  EXPECT_ERROR(tokenizer.encode("abé"), ArgumentError,
               "char_tokenizer: 'é' (U+00E9) at byte 2 is not among the 2 characters of the vocabulary");
  EXPECT_ERROR(tokenizer.encode("a\xff"), ArgumentError, "char_tokenizer: wants text in UTF-8, byte 1 is 255");
  EXPECT_ERROR((tokenizer.decode(Ints{2})), ArgumentError, "char_tokenizer: a token must be 0 to 1, got 2");
  const TemporaryFolder folder;
  const std::string path = folder / "x.json";
  const auto act = [&] { CharTokenizer::load(path); };
  expect_io_error(act, path, -1, {"No such file"});
  put(path, "{\"characters\": [\"a\",");
  expect_io_error(act, path, 20, {"expected JSON", "unexpected end of input"});
  put(path, "[1]");
  expect_io_error(act, path, -1, {"an object with an array", "array"});
  put(path, "{\"characters\": [\"a\", \"bc\"]}");
  expect_io_error(act, path, -1, {"one character as token 1", "\"bc\""});
  put(path, "{\"characters\": [\"a\", 7]}");
  expect_io_error(act, path, -1, {"one character as token 1", "found 7"});
  put(path, "{\"characters\": [\"a\", \"b\", \"a\"]}");
  expect_io_error(act, path, -1, {"each character once", "'a' (U+0061) twice"});
}

// What the Python module regex gives for GPT-2's pattern.
TEST(BpeTokenizer, splits_as_the_pattern_of_gpt2_does) {
  const auto split = [](std::string_view text) { return BpeTokenizer::split(text); };
  EXPECT_EQ(split("Hello world!"), (Words{"Hello", " world", "!"}));
  EXPECT_EQ(split("I'll we've 'S it's'"), (Words{"I", "'ll", " we", "'ve", " '", "S", " it", "'s", "'"}));
  EXPECT_EQ(split("a  b\n\n  c "), (Words{"a", " ", " b", "\n\n ", " c", " "}));
  EXPECT_EQ(split("a\nb \n"), (Words{"a", "\n", "b", " \n"}));
  EXPECT_EQ(split("x1 22٣½ ²a"), (Words{"x", "1", " 22٣½", " ²", "a"}));
  EXPECT_EQ(split("naïve 日本語 Ωmega_3"), (Words{"naïve", " 日本語", " Ωmega", "_", "3"}));
  EXPECT_EQ(split("a\u00a0b\u2003c\u200bd"), (Words{"a", "\u00a0", "b", "\u2003", "c", "\u200b", "d"}));
  EXPECT_EQ(split("e\u0301 ..., \U0001f600'reX"), (Words{"e", "\u0301", " ...,", " \U0001f600'", "reX"}));
  EXPECT_EQ(split("''d 'd"), (Words{"''", "d", " '", "d"}));
  EXPECT_EQ(split("a \t\u3000 b"), (Words{"a", " \t\u3000", " b"}));
  EXPECT_EQ(split("a\xff\xfe z"), (Words{"a", "\xff\xfe", " z"}));
  EXPECT_TRUE(split("").empty());
}

// A vocabulary of ASCII, the blank (94) and the line end (95), then what the merges make, in their order.
struct SmallBpe {
  explicit SmallBpe(const std::string& merges) {
    std::string json = "{";
    int next = 0;
    for (char c = '!'; c <= '~'; ++c)
      json += "\""s + (c == '"' || c == '\\' ? "\\" : "") + c + "\": " + std::to_string(next++) + ", ";
    json += "\"\u0120\": " + std::to_string(next++);
    json += ", \"\u010a\": " + std::to_string(next++);
    for (std::size_t begin = 0; begin < merges.size();) {
      const std::size_t end = merges.find('\n', begin), blank = merges.find(' ', begin);
      json += ", \"" + merges.substr(begin, blank - begin) + merges.substr(blank + 1, end - blank - 1) +
              "\": " + std::to_string(next++);
      begin = end + 1;
    }
    json += ", \"<|endoftext|>\": " + std::to_string(next) + "}";
    put(folder / "vocab.json", json);
    put(folder / "merges.txt", "#version: 0.2\n" + merges);
  }
  BpeTokenizer load() const { return BpeTokenizer::load(folder / "vocab.json", folder / "merges.txt"); }
  TemporaryFolder folder;
};

constexpr std::int32_t letter(char c) { return c - '!'; }

TEST(BpeTokenizer, merges_by_rank_and_not_by_place) {
  // 96 lo, 97 low, 98 er, 99 Ġlow, 100 es
  const BpeTokenizer tokenizer = SmallBpe("l o\nlo w\ne r\n\u0120 low\ne s\n").load();
  EXPECT_EQ(tokenizer.size(), 102);
  EXPECT_EQ(tokenizer.encode("low lower"), (Ints{97, 99, 98}));
  // "er" is stronger than "es" and takes the e that both could have.
  EXPECT_EQ(tokenizer.encode("es ers"), (Ints{100, 94, 98, letter('s')}));
  EXPECT_EQ(tokenizer.encode("\nlo"), (Ints{95, 96}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("low lower\n")), "low lower\n");
  EXPECT_EQ(tokenizer.id("<|endoftext|>"), 101);
  EXPECT_EQ(tokenizer.id("\u0120low"), 99);
  EXPECT_EQ(tokenizer.id("slow"), std::nullopt);
  EXPECT_EQ(tokenizer.decode(Ints{101, 99}), "<|endoftext|> low");
}

TEST(BpeTokenizer, merges_all_places_of_a_pair_before_the_next_pair) {
  // 96 aa, 97 aaa (aa a), 98 aaaa (aa aa)
  const BpeTokenizer tokenizer = SmallBpe("a a\naa a\naa aa\n").load();
  EXPECT_EQ(tokenizer.encode("aaa"), (Ints{97}));
  EXPECT_EQ(tokenizer.encode("aaaa"), (Ints{98}));
  EXPECT_EQ(tokenizer.encode("aaaaa"), (Ints{96, 97}));
  // A stronger pair may appear only after a weaker one was merged.
  const BpeTokenizer later = SmallBpe("bc d\nb c\n").load();
  EXPECT_EQ(later.encode("bcdbcd"), (Ints{96, 96}));
}

TEST(BpeTokenizer, long_words_take_no_quadratic_time) {
  const BpeTokenizer tokenizer = SmallBpe("a a\naa aa\naaaa aaaa\n").load();
  EXPECT_EQ(tokenizer.encode(std::string(1 << 18, 'a')).size(), std::size_t{1} << 15);
}

TEST(BpeTokenizer, reports_damaged_files_and_unknown_bytes) {
  const SmallBpe small("l o\n");
  const std::string vocab = small.folder / "vocab.json", merges = small.folder / "merges.txt";
  const auto act = [&] { BpeTokenizer::load(vocab, merges); };
  EXPECT_ERROR(small.load().encode("l\x80"), ArgumentError, "bpe: the vocabulary has no token for byte 128");
  EXPECT_ERROR((small.load().decode(Ints{-1})), ArgumentError, "bpe: a token must be 0 to 97, got -1");
  expect_io_error([&] { BpeTokenizer::load(small.folder / "absent", merges); }, small.folder / "absent", -1,
                  {"No such file"});
  put(merges, "#version: 0.2\nl o\nlo\n");
  expect_io_error(act, merges, 18, {"two tokens with a blank between in line 3", "'lo'"});
  put(merges, "l o w\n");
  expect_io_error(act, merges, 0, {"two tokens with a blank between in line 1"});
  put(merges, "l o\nlo w\n");
  expect_io_error(act, merges, 4, {"tokens of the vocabulary in line 2", "'low'"});
  put(merges, "l o\nl \u00e9\n");
  expect_io_error(act, merges, 6, {"tokens of the vocabulary in line 2"});
  put(merges, "l o\nl o\n");
  expect_io_error(act, merges, 4, {"each pair once in line 2"});
  put(vocab, "{\"a\": 0, \"b\": ");
  expect_io_error(act, vocab, 14, {"expected JSON"});
  put(vocab, "[]");
  expect_io_error(act, vocab, -1, {"an object of tokens"});
  put(vocab, "{\"a\": 0, \"b\": 2}");
  expect_io_error(act, vocab, -1, {"a number from 0 to 1 for token 'b'", "found 2"});
  put(vocab, "{\"a\": 0, \"b\": \"1\"}");
  expect_io_error(act, vocab, -1, {"a number from 0 to 1 for token 'b'"});
  put(vocab, "{\"a\": 1, \"b\": 1}");
  expect_io_error(act, vocab, -1, {"each number once", "1 again"});
}

TEST(BpeTokenizer, gives_any_bytes_back) {
  // The table as encoder.py builds it: printable bytes are themselves, the others follow from U+0100 on.
  std::string json = "{";
  int other = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    char token[16];
    std::snprintf(token, sizeof token, "\\u%04x", is_printable ? byte : 256 + other++);
    json += (byte > 0 ? ", \"" : "\"") + std::string(token) + "\": " + std::to_string(byte);
  }
  const TemporaryFolder folder;
  put(folder / "vocab.json", json + ", \"\u0120t\": 256, \"he\": 257, \"\u0120the\": 258}");
  put(folder / "merges.txt", "\u0120 t\nh e\n\u0120t he\n");
  const BpeTokenizer tokenizer = BpeTokenizer::load(folder / "vocab.json", folder / "merges.txt");
  EXPECT_EQ(tokenizer.encode("\r the \xc3\xa9\x01"), (Ints{13, 258, 32, 0xc3, 0xa9, 1}));
  std::mt19937 random(1);
  std::string bytes;
  for (int i = 0; i < 100000; ++i) bytes += static_cast<char>(random());
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(bytes)), bytes);
}

TEST(TokenWindows, pair_each_token_with_its_successor) {
  const DatasetPtr set = token_windows({10, 11, 12, 13, 14, 15, 16}, 3);
  EXPECT_EQ(set->size(), 2);
  EXPECT_EQ(set->fields()[1].name, "target");
  const Sample second(*set, 1);
  EXPECT_EQ(second.values<std::int32_t>(0), (Ints{13, 14, 15}));
  EXPECT_EQ(second.values<std::int32_t>(1), (Ints{14, 15, 16}));
  const DatasetPtr every = token_windows({10, 11, 12, 13, 14, 15, 16}, 3, 1);
  EXPECT_EQ(every->size(), 4);
  EXPECT_EQ(Sample(*every, 3).values<std::int32_t>(1), (Ints{14, 15, 16}));
  EXPECT_ERROR(token_windows({1, 2, 3}, 3), ArgumentError,
               "token_windows: a context of 3 wants at least 4 tokens, got 3");
  EXPECT_ERROR(token_windows({1, 2, 3}, 0), ArgumentError, "token_windows: context must be 1 or more, got 0");
  EXPECT_ERROR(token_windows({1, 2, 3}, 1, -1), ArgumentError, "token_windows: stride must be 0 or more, got -1");
}

TEST(TokenWindows, keep_the_end_of_the_text_for_validation) {
  Ints ids(100);
  for (std::int32_t i = 0; i < 100; ++i) ids[static_cast<std::size_t>(i)] = i;
  const Split parts = token_split(ids, 4, {.stride = 1});
  EXPECT_EQ(parts.train->size(), 86);
  EXPECT_EQ(Sample(*parts.train, 85).values<std::int32_t>(1), (Ints{86, 87, 88, 89}));
  EXPECT_EQ(parts.test->size(), 2);
  EXPECT_EQ(Sample(*parts.test, 0).values<std::int32_t>(0), (Ints{90, 91, 92, 93}));
  EXPECT_ERROR(token_split(ids, 10), ArgumentError,
               "token_windows: a context of 10 wants at least 11 tokens for validation, got 10");
  EXPECT_ERROR(token_split(ids, 4, {.validation = 1}), ArgumentError,
               "token_split: validation must be between 0 and 1, got 1.000000");
}

TEST(Text, reads_the_real_shakespeare) {
  const std::string folder = testing::data_folder("text");
  SAMEBYTES_NEED_DATA(folder);
  const std::string text = read_text(folder + "/tinyshakespeare.txt");
  const CharTokenizer tokenizer = CharTokenizer::from_text(text);
  EXPECT_EQ(tokenizer.size(), 65);
  const Ints ids = tokenizer.encode(text);
  EXPECT_EQ(ids.size(), 1115394u);
  EXPECT_EQ(tokenizer.decode(ids), text);
  EXPECT_EQ(tokenizer.encode("First"), (Ints{18, 47, 56, 57, 58}));  // as in karpathy/ng-video-lecture
  const Split parts = token_split(ids, 256);
  EXPECT_EQ(parts.train->size(), (1003854 - 1) / 256);
  EXPECT_EQ(parts.test->size(), (111540 - 1) / 256);
}

}  // namespace
}  // namespace samebytes::data
