// text::Tokenizer against what the Python package `tokenizers` gave (files.json, by make_files.py).
#include "samebytes/text/tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "support/errors.h"
#include "support/files.h"
#include "support/io_errors.h"

namespace samebytes::text {
namespace {

using nlohmann::json;
using testing::expect_io_error;
using Ints = std::vector<std::int32_t>;

const json& files() {
  static const json parsed = json::parse(testing::get(testing::source_folder() + "/tests/text/files.json"));
  return parsed;
}

const json& file_of(const std::string& name) {
  for (const json& entry : files())
    if (entry["name"] == name) return entry["file"];
  throw std::runtime_error("no file " + name);
}

Tokenizer parsed(const json& file) { return Tokenizer::parse("x/tokenizer.json", file.dump()); }
Tokenizer tokenizer_of(const std::string& name) { return parsed(file_of(name)); }

class TokenizerFiles : public ::testing::TestWithParam<std::size_t> {};

TEST_P(TokenizerFiles, give_the_ids_of_the_python_package) {
  const json& entry = files()[GetParam()];
  const Tokenizer tokenizer = parsed(entry["file"]);
  for (const json& text : entry["texts"]) {
    const auto first = text["text"].get<std::string>();
    SCOPED_TRACE(entry["name"].get<std::string>() + ": " + first);
    const Encoding encoding =
        text["second"].is_null() ? tokenizer.encode(first) : tokenizer.encode(first, text["second"].get<std::string>());
    EXPECT_EQ(encoding.ids, text["ids"].get<Ints>());
    EXPECT_EQ(encoding.types, text["types"].get<Ints>());
    EXPECT_EQ(encoding.mask, text["mask"].get<Ints>());
    EXPECT_EQ(tokenizer.decode(encoding.ids), text["decoded"].get<std::string>());
    // Words that were seen before come from a cache.
    EXPECT_EQ(text["second"].is_null() ? tokenizer.encode(first).ids : encoding.ids, encoding.ids);
  }
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerFiles, ::testing::Range(std::size_t{0}, std::size_t{6}),
                         [](const auto& param) { return files()[param.param]["name"].template get<std::string>(); });

TEST(Tokenizer, streams_the_text_that_it_decodes) {
  for (const json& entry : files()) {
    const Tokenizer tokenizer = parsed(entry["file"]);
    for (const json& text : entry["texts"]) {
      if (entry["name"] == "bert" || entry["name"] == "steps") continue;  // a token there changes what is before it
      TextStream stream(tokenizer);
      std::string whole;
      for (const auto id : text["ids"].get<Ints>()) whole += stream.add(id);
      EXPECT_EQ(whole + stream.finish(), text["decoded"].get<std::string>()) << entry["name"];
    }
  }
}

TEST(Tokenizer, a_character_of_several_tokens_is_written_when_it_is_whole) {
  const Tokenizer tokenizer = tokenizer_of("gpt2");
  TextStream stream(tokenizer);
  const Ints ids = tokenizer.encode("\u8a9e").ids;
  ASSERT_EQ(ids.size(), 3u);
  EXPECT_EQ(stream.add(ids[0]), "");
  EXPECT_EQ(stream.add(ids[1]), "");
  EXPECT_EQ(stream.add(ids[2]), "\u8a9e");
  EXPECT_EQ(stream.add(ids[0]), "");
  EXPECT_EQ(stream.finish(), "\ufffd");
}

// What Python's decode(errors="replace") makes of the bytes before the package sees them.
TEST(Tokenizer, broken_utf8_counts_as_replacement_characters) {
  const Tokenizer tokenizer = tokenizer_of("gpt2");
  const auto same = [&](std::string_view broken, std::string_view replaced) {
    EXPECT_EQ(tokenizer.encode(broken).ids, tokenizer.encode(replaced).ids) << replaced;
  };
  same("a\xff z", "a\ufffd z");
  same("\xc3", "\ufffd");
  same("\xe2\x82z", "\ufffdz");
  same("\xf0\x9f\x98 \xf0\x9f\x98\x80", "\ufffd \U0001f600");
  same("\xed\xa0\x80", "\ufffd\ufffd\ufffd");
  same("\xc0\xaf\xf5\x80", "\ufffd\ufffd\ufffd\ufffd");
  same("\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd");
}

TEST(Tokenizer, truncates_and_pads_as_it_is_told) {
  Tokenizer tokenizer = tokenizer_of("bert");
  EXPECT_EQ(tokenizer.truncation()->max_length, 12);
  EXPECT_EQ(tokenizer.padding()->multiple_of, 4);
  tokenizer.set_truncation(std::nullopt);
  tokenizer.set_padding(std::nullopt);
  const Ints long_ids = tokenizer.encode("the cat's newest, newest low").ids, short_ids = tokenizer.encode("low").ids;
  ASSERT_GT(long_ids.size(), short_ids.size() + 2);
  tokenizer.set_padding(Padding{.side = Side::left, .id = 7, .type = 3});
  const std::vector<std::string> texts{"the cat's newest, newest low", "low"};
  const auto batch = tokenizer.encode_batch(texts);
  EXPECT_EQ(batch[0].ids, long_ids);
  ASSERT_EQ(batch[1].ids.size(), long_ids.size());
  EXPECT_EQ(batch[1].ids.front(), 7);
  EXPECT_EQ(batch[1].types.front(), 3);
  EXPECT_EQ(batch[1].mask.front(), 0);
  EXPECT_EQ(batch[1].mask.back(), 1);
  tokenizer.set_padding(Padding{.length = 100});
  EXPECT_EQ(tokenizer.encode("low").ids.size(), 100u);
  tokenizer.set_padding(std::nullopt);

  tokenizer.set_truncation(Truncation{.max_length = 5});
  EXPECT_EQ(tokenizer.encode(texts[0]).ids, (Ints{2, long_ids[1], long_ids[2], long_ids[3], 3}));
  tokenizer.set_truncation(Truncation{.max_length = 5, .side = Side::left});
  const std::size_t count = long_ids.size();
  EXPECT_EQ(tokenizer.encode(texts[0]).ids,
            (Ints{2, long_ids[count - 4], long_ids[count - 3], long_ids[count - 2], 3}));
  tokenizer.set_truncation(Truncation{.max_length = 9, .strategy = TruncationStrategy::only_first});
  EXPECT_EQ(tokenizer.encode(texts[0], texts[1]).ids.size(), 9u);
  EXPECT_EQ(tokenizer.encode(texts[0], {.add_special_tokens = false}).ids,
            (Ints(long_ids.begin() + 1, long_ids.end() - 1)));
  EXPECT_ERROR(tokenizer.encode("low", texts[0]), Error,
               "tokenizer: a truncation to 6 tokens leaves nothing of the text that it cuts");
  EXPECT_ERROR(tokenizer.set_truncation(Truncation{.max_length = -1}), ArgumentError,
               "tokenizer: expected a truncation to 0 to 16777216 tokens, got -1");
  EXPECT_ERROR(tokenizer.set_padding(Padding{.length = -1}), ArgumentError,
               "tokenizer: expected a padding's length from 0 to 16777216, got -1");
}

TEST(Tokenizer, knows_its_tokens) {
  const Tokenizer tokenizer = tokenizer_of("unigram");
  const std::int32_t end = tokenizer.id("<|end|>").value();
  EXPECT_EQ(end, tokenizer.largest_id());
  EXPECT_EQ(tokenizer.size(), end + 1);
  EXPECT_EQ(tokenizer.token(end), "<|end|>");
  EXPECT_TRUE(tokenizer.is_special(end));
  EXPECT_FALSE(tokenizer.is_special(tokenizer.encode("the").ids[1]));
  EXPECT_EQ(tokenizer.id("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer.token(-1), std::nullopt);
  EXPECT_EQ(tokenizer.token(1 << 30), std::nullopt);
  EXPECT_EQ(tokenizer.decode(Ints{end, -5, 1 << 30}), "");
  EXPECT_EQ(tokenizer.decode(Ints{end}, {.skip_special_tokens = false}), "<|end|>");
}

TEST(Tokenizer, is_used_by_several_threads) {
  const Tokenizer tokenizer = tokenizer_of("llama3");
  const std::string text = "the lower newest caf\u00e9 123456 \U0001f600";
  const Ints expected = tokenizer.encode(text).ids;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) EXPECT_EQ(tokenizer.encode(text).ids, expected);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Tokenizer, long_words_take_no_quadratic_time) {
  for (const char* name : {"gpt2", "llama", "bert", "unigram", "steps"}) {
    const Tokenizer tokenizer = tokenizer_of(name);
    EXPECT_GT(tokenizer.encode(std::string(1 << 18, 'e')).ids.size(), 0u);
    EXPECT_GT(tokenizer.encode(std::string(1 << 18, ' ')).ids.size() + 1, 0u);
  }
}

TEST(Tokenizer, reads_a_folder) {
  const testing::TemporaryFolder folder;
  testing::put(folder / "tokenizer.json", file_of("gpt2").dump());
  EXPECT_EQ(Tokenizer::load(folder.string()).encode("the").ids, tokenizer_of("gpt2").encode("the").ids);
  EXPECT_EQ(Tokenizer::load(folder / "tokenizer.json").size(), tokenizer_of("gpt2").size());
  expect_io_error([&] { Tokenizer::load(folder / "absent"); }, folder / "absent", -1, {"No such file"});
}

// Changes one place of a file and expects an error that names it.
void expect_refused(const std::string& name, const std::string& place, const json& value,
                    std::initializer_list<const char*> parts) {
  json file = file_of(name);
  file[json::json_pointer(place)] = value;
  SCOPED_TRACE(place);
  expect_io_error([&] { parsed(file); }, "x/tokenizer.json", -1, parts);
}

TEST(Tokenizer, names_what_a_file_wants_and_it_does_not_have) {
  expect_refused("gpt2", "/model/type", "Foo", {"BPE, WordPiece, WordLevel or Unigram as model.type", "\"Foo\""});
  expect_refused("gpt2", "/pre_tokenizer/type", "UnicodeScripts", {"as pre_tokenizer.type", "\"UnicodeScripts\""});
  expect_refused("unigram", "/normalizer/normalizers/1/type", "Foo", {"as normalizer.normalizers[1].type", "\"Foo\""});
  expect_refused("bert", "/post_processor/type", "Foo", {"as post_processor.type", "\"Foo\""});
  expect_refused("bert", "/decoder/type", 7, {"a text as decoder.type", "7"});
  expect_refused("gpt2", "/model/dropout", 0.1, {"null", "model.dropout", "0.1"});
  expect_refused("gpt2", "/model/vocab", 3, {"an object as model.vocab", "3"});
  expect_refused("gpt2", "/model/vocab/!", -1, {"a number from 0 to", "token '!'", "-1"});
  expect_refused("gpt2", "/model/vocab/!", 1 << 30, {"a number from 0 to", "1073741824"});
  expect_refused("gpt2", "/model/merges/0", "a", {"two tokens with a blank between as model.merges[0]"});
  expect_refused("gpt2", "/model/merges/0", json::array({"a", "nowhere"}), {"tokens of the vocabulary", "nowhere"});
  expect_refused("gpt2", "/added_tokens/0/special", "yes", {"true or false as added_tokens[0].special"});
  expect_refused("llama3", "/pre_tokenizer/pretokenizers/0/pattern", json{{"Regex", "(a"}}, {"(a", "PCRE2"});
  expect_refused("llama3", "/pre_tokenizer/pretokenizers/0/behavior", "Sometimes", {"behavior", "Sometimes"});
  expect_refused("unigram", "/model/vocab/0", json::array({"a", "b"}), {"a token and its score as model.vocab[0]"});
  expect_refused("unigram", "/model/unk_id", 1 << 20, {"model.unk_id", "1048576"});
  expect_refused("bert", "/padding/strategy", json{{"Fixed", 1 << 30}}, {"padding.strategy.Fixed"});
  expect_io_error([] { Tokenizer::parse("x", "[]"); }, "x", -1, {"an object", "array"});
  expect_io_error([] { Tokenizer::parse("x", "{\"a\": "); }, "x", 6, {"JSON"});
}

TEST(Tokenizer, gives_up_on_patterns_that_never_end) {
  json file = file_of("llama3");
  file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(x+x+)+[yz]";
  EXPECT_ERROR(parsed(file).encode(std::string(40, 'x')), Error,
               "tokenizer: a pattern gave up at byte 0 of a text: match limit exceeded");
}

TEST(Tokenizer, replacements_that_multiply_a_text_are_an_error) {
  json file = file_of("gpt2");
  json steps = json::array();
  for (int i = 0; i < 20; ++i)
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(1000, 'a')}});
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
  EXPECT_ERROR(parsed(file).encode("aaaa"), Error, "tokenizer: the file's replacements make 1305000 bytes of 4000");
}

}  // namespace
}  // namespace samebytes::text
