// Tokenizers and chat templates that GGUF files carry, against the same said as a tokenizer.json, and against ids of
// llama.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "samebytes/error.h"
#include "samebytes/text/chat_template.h"
#include "samebytes/text/tokenizer.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/gguf.h"
#include "text/byte_characters.h"

namespace samebytes::testing {
namespace {

using gguf::pair;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using Texts = std::vector<std::string>;
using Ids = std::vector<std::int32_t>;

class GgufTokenizerTest : public ::testing::Test {
 protected:
  const std::string& file(const std::vector<std::string>& pairs) {
    put(path_, gguf::file_of(pairs));
    return path_;
  }
  std::string refused(const std::vector<std::string>& pairs) {
    file(pairs);
    return message_of<IoError>([&] { text::Tokenizer::load(path_); });
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "x.gguf";
};

// The bytes, three pairs and three special tokens.
struct BytePairs {
  Texts tokens{detail::byte_characters().begin(), detail::byte_characters().end()}, merges{"h e", "l l", "he ll"};
  Ids types = Ids(259, 1);
  BytePairs() {
    tokens.insert(tokens.end(), {"he", "ll", "hell", "<|end|>", "<|start|>", "<tool>"});
    types.insert(types.end(), {3, 3, 4});
  }
  std::vector<std::string> pairs(const std::string& pre) const {
    return {pair("tokenizer.ggml.model", "gpt2"),
            pair("tokenizer.ggml.pre", pre),
            pair("tokenizer.ggml.tokens", tokens),
            pair("tokenizer.ggml.token_type", types),
            pair("tokenizer.ggml.merges", merges),
            pair("tokenizer.ggml.bos_token_id", std::uint32_t{260}),
            pair("tokenizer.ggml.eos_token_id", std::uint32_t{259})};
  }
};

TEST_F(GgufTokenizerTest, byte_pairs_are_those_of_the_same_tokenizer_json) {
  const BytePairs made;
  Json vocabulary = Json::object();
  for (std::size_t i = 0; i < made.tokens.size(); ++i) vocabulary[made.tokens[i]] = i;
  const auto added = [](const char* word, int id, bool is_special) {
    return Json{{"id", id},        {"content", word},     {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", is_special}};
  };
  const Json bytes{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", true}};
  const Json json{
      {"added_tokens", {added("<|end|>", 259, true), added("<|start|>", 260, true), added("<tool>", 261, false)}},
      {"pre_tokenizer", bytes},
      {"decoder", bytes},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", made.merges}}}};
  const auto expected = text::Tokenizer::parse("tokenizer.json", json.dump());
  const auto tokenizer = text::Tokenizer::load(file(made.pairs("gpt-2")));
  for (const char* text : {"hello hell<|end|> it's 2024!", "", "  <tool>x\n\n\u00e9\U0001f600 hhell\xff"}) {
    const auto ids = tokenizer.encode(text).ids;
    EXPECT_EQ(ids, expected.encode(text).ids) << text;
    EXPECT_EQ(tokenizer.decode(ids), expected.decode(ids)) << text;
  }
  EXPECT_TRUE(tokenizer.is_special(259));
  EXPECT_FALSE(tokenizer.is_special(261));
  // The files of a folder that say the same.
  const text::TokenizerFiles files = text::gguf_tokenizer_files(path_);
  EXPECT_EQ(text::Tokenizer::parse("x", files.tokenizer).encode("hello <tool>").ids,
            tokenizer.encode("hello <tool>").ids);
  EXPECT_EQ(Json::parse(files.config)["eos_token"], "<|end|>");
}

TEST_F(GgufTokenizerTest, what_cuts_words_has_a_name) {
  const BytePairs made;
  const auto words = [&](const char* pre, const char* text) {
    return text::Tokenizer::load(file(made.pairs(pre))).encode(text, {.add_special_tokens = false}).ids.size();
  };
  // A word of Llama 3's that is a token is not paired; "\n\n" and "'S" are words, which no pairs cross.
  EXPECT_EQ(words("llama-bpe", "hell"), 1u);
  EXPECT_EQ(text::Tokenizer::load(file(made.pairs("llama-bpe"))).encode("hell").ids, (Ids{260, 258}));
  EXPECT_EQ(text::Tokenizer::load(file(made.pairs("qwen2"))).encode("e\u0301").ids.size(), 2u);   // composed
  EXPECT_EQ(text::Tokenizer::load(file(made.pairs("smollm"))).encode("e\u0301").ids.size(), 3u);  // as it is
  for (const char* pre : {"default", "tekken", "gpt-2"}) EXPECT_EQ(words(pre, "hell yes, 1234"), 11u) << pre;
  EXPECT_THAT(refused(made.pairs("jina-v9")), HasSubstr("as tokenizer.ggml.pre"));
}

// As SentencePiece has them: "▁he" is better than "he", which is better than "el".
struct Pieces {
  Texts tokens{"<unk>", "<s>", "</s>"};
  std::vector<float> scores{0, 0, 0};
  Ids types{2, 3, 3};
  Pieces() {
    for (int byte = 0; byte < 256; ++byte) {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
      add(name, 0, 6);
    }
    const char* const pieces[] = {"\u2581he", "he",     "el", "ll", "\u2581hell", "hell",
                                  "llo",      "\u2581", "h",  "e",  "l",          "o"};
    float score = 0;
    for (const char* piece : pieces) add(piece, score--, 1);
    add("<|user|>", 0, 4);
  }
  void add(const std::string& token, float score, int type) {
    tokens.push_back(token);
    scores.push_back(score);
    types.push_back(type);
  }
  std::vector<std::string> pairs() const {
    return {pair("tokenizer.ggml.model", "llama"),
            pair("tokenizer.ggml.tokens", tokens),
            pair("tokenizer.ggml.scores", scores),
            pair("tokenizer.ggml.token_type", types),
            pair("tokenizer.ggml.unknown_token_id", std::uint32_t{0}),
            pair("tokenizer.ggml.bos_token_id", std::uint32_t{1}),
            pair("tokenizer.ggml.eos_token_id", std::uint32_t{2})};
  }
};

TEST_F(GgufTokenizerTest, pieces_are_paired_by_their_scores) {
  const Pieces made;
  constexpr int kFirst = 259;  // "▁he"
  auto tokenizer = text::Tokenizer::load(file(made.pairs()));
  // "▁hello": "▁he", then "ll", then "▁hell"; "llo" comes too late.
  EXPECT_THAT(tokenizer.encode("hello").ids, ElementsAre(1, kFirst + 4, kFirst + 11));
  EXPECT_THAT(tokenizer.encode("ohell el").ids,
              ElementsAre(1, kFirst + 7, kFirst + 11, kFirst + 5, kFirst + 7, kFirst + 2));
  // Bytes of what has no piece; a blank before each part of a text; special tokens as they are.
  EXPECT_THAT(tokenizer.encode("\u00e9<|user|>o</s>").ids,
              ElementsAre(1, kFirst + 7, 3 + 0xc3, 3 + 0xa9, kFirst + 12, kFirst + 7, kFirst + 11, 2));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("hello \u00e9l").ids), "hello \u00e9l");
  std::vector<std::string> pairs = made.pairs();
  pairs.push_back(pair("tokenizer.ggml.add_space_prefix", false));
  pairs.push_back(pair("tokenizer.ggml.add_bos_token", false));
  pairs.push_back(pair("tokenizer.ggml.add_eos_token", true));
  tokenizer = text::Tokenizer::load(file(pairs));
  EXPECT_THAT(tokenizer.encode("hell").ids, ElementsAre(kFirst + 5, 2));
  EXPECT_EQ(tokenizer.decode(Ids{kFirst + 4}), " hell");
}

TEST_F(GgufTokenizerTest, word_pieces_of_an_encoder) {
  const Texts tokens{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u2581play", "ing", "\u2581the", "\u2581,"};
  const auto tokenizer = text::Tokenizer::load(file(
      {pair("tokenizer.ggml.model", "bert"), pair("tokenizer.ggml.tokens", tokens),
       pair("tokenizer.ggml.token_type", Ids{3, 3, 3, 3, 1, 1, 1, 1}),
       pair("tokenizer.ggml.unknown_token_id", std::uint32_t{1}), pair("tokenizer.ggml.bos_token_id", std::uint32_t{2}),
       pair("tokenizer.ggml.seperator_token_id", std::uint32_t{3})}));
  EXPECT_THAT(tokenizer.encode("The playing, thing").ids, ElementsAre(2, 6, 4, 5, 7, 1, 3));
  EXPECT_EQ(tokenizer.decode(Ids{2, 4, 5, 3}), "playing");
}

TEST_F(GgufTokenizerTest, a_chat_template_and_its_tokens) {
  std::vector<std::string> pairs = BytePairs().pairs("gpt-2");
  file(pairs);
  EXPECT_FALSE(text::ChatTemplate::find(path_).has_value());
  pairs.push_back(pair("tokenizer.chat_template", "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"));
  EXPECT_EQ(text::ChatTemplate::load(file(pairs)).apply({{"user", "hell"}}), "<|start|>hell<|end|>");
  // A whole tokenizer.json in the file is used as it is.
  pairs.push_back(
      pair("tokenizer.huggingface.json", R"({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}})"));
  EXPECT_THAT(text::Tokenizer::load(file(pairs)).encode("hell").ids, ElementsAre(0));
}

TEST_F(GgufTokenizerTest, wrong_lists_are_refused) {
  EXPECT_THAT(refused({pair("general.name", "x")}), HasSubstr("gpt2, llama or bert as tokenizer.ggml.model"));
  BytePairs made;
  EXPECT_THAT(refused({pair("tokenizer.ggml.model", "gpt2"), pair("tokenizer.ggml.tokens", made.tokens)}),
              HasSubstr("a list of pairs as tokenizer.ggml.merges"));
  made.types.pop_back();
  EXPECT_THAT(refused(made.pairs("gpt-2")), HasSubstr("262 numbers as tokenizer.ggml.token_type"));
  std::vector<std::string> pairs = BytePairs().pairs("llama-bpe");
  pairs[5] = pair("tokenizer.ggml.bos_token_id", std::uint32_t{262});
  EXPECT_THAT(refused(pairs), HasSubstr("a number below 262 as tokenizer.ggml.bos_token_id"));
  pairs = Pieces().pairs();
  pairs[2] = pair("tokenizer.ggml.scores", Texts{"x"});
  EXPECT_THAT(refused(pairs), HasSubstr("as tokenizer.ggml.scores"));
  Pieces longer;
  longer.add(std::string(300, 'h'), -9, 1);
  EXPECT_THAT(refused(longer.pairs()), HasSubstr("pieces of at most 256 bytes"));
}

}  // namespace
}  // namespace samebytes::testing
