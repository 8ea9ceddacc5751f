// Conversations with a model that writes what it was told to: a gpt2 whose answers are drawn with a temperature of 0.
#include "samebytes/models/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/folders.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// The letters a to z are the ids 3 to 28.
text::Tokenizer letters() {
  Json vocabulary = {{"<s>", 0}, {"</s>", 1}, {" ", 2}};
  for (int i = 0; i < 26; ++i) vocabulary[std::string(1, static_cast<char>('a' + i))] = 3 + i;
  const Json file{{"version", "1.0"},
                  {"added_tokens", Json::array()},
                  {"normalizer", nullptr},
                  {"pre_tokenizer",
                   {{"type", "Split"}, {"pattern", {{"String", ""}}}, {"behavior", "Isolated"}, {"invert", false}}},
                  {"post_processor", nullptr},
                  {"decoder", {{"type", "Fuse"}}},
                  {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
  return text::Tokenizer::parse("tokenizer.json", file.dump());
}

class ChatTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(ChatTest);

TEST_P(ChatTest, an_answer_is_the_text_of_the_tokens_up_to_what_ends_it) {
  const auto model = fresh(decoder_config("llama", "LlamaForCausalLM"));
  model->eval();
  const text::Tokenizer tokenizer = letters();
  const std::vector<std::int32_t> prompt = tokenizer.encode("hello").ids;
  ASSERT_THAT(prompt, SizeIs(5));
  const std::vector<std::int32_t> ids = models::generate(*model, prompt, {.tokens = 12, .temperature = 0});
  const std::string whole = tokenizer.decode(std::span(ids).subspan(5));
  models::ReplyOptions how{.sampling = {.tokens = 12, .temperature = 0}};
  models::Chat chat(*model, tokenizer, std::nullopt);
  std::string told;
  how.on_text = [&](std::string_view text) {
    told += text;
    return true;
  };
  const models::Reply reply = chat.reply("hello", how);
  EXPECT_EQ(reply.text, whole);
  EXPECT_EQ(told, whole);
  EXPECT_EQ(reply.prompt_tokens, 5);
  EXPECT_EQ(reply.tokens, 12);
  ASSERT_THAT(chat.messages(), SizeIs(2));
  EXPECT_EQ(chat.messages()[1].content, whole);

  chat.clear();
  told.clear();
  how.stop = {"never there", whole.substr(4, 3)};
  EXPECT_EQ(chat.reply("hello", how).text, whole.substr(0, whole.find(whole.substr(4, 3))));
  EXPECT_EQ(told, whole.substr(0, whole.find(whole.substr(4, 3))));

  chat.clear();
  how.stop = {};
  how.on_text = [](std::string_view) { return false; };
  EXPECT_EQ(chat.reply("hello", how).text, whole.substr(0, 1));
  models::Chat ending(*model, tokenizer, std::nullopt, {ids[7]});
  EXPECT_EQ(ending.reply("hello", {.sampling = {.tokens = 12, .temperature = 0}}).text,
            tokenizer.decode(std::span(ids).subspan(
                5, static_cast<std::size_t>(std::find(ids.begin() + 5, ids.end(), ids[7]) - ids.begin()) - 5)));
}

TEST_P(ChatTest, a_template_sees_the_whole_conversation) {
  const auto model = fresh(decoder_config("llama", "LlamaForCausalLM"));
  models::Chat chat(*model, letters(),
                    text::ChatTemplate::parse("x.jinja",
                                              "{% if messages | length > 3 %}{{ raise_exception('enough') }}"
                                              "{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}"));
  chat.add("system", "be");
  const models::Reply reply = chat.reply("it", {.sampling = {.tokens = 3, .temperature = 0}});
  EXPECT_EQ(reply.prompt_tokens, 4);
  EXPECT_THAT(chat.messages(), SizeIs(3));
  EXPECT_ERROR(chat.reply("on"), Error, "chat template: x.jinja, line 1: the template refuses: enough");
  EXPECT_THAT(chat.messages(), SizeIs(3));
  const auto encoder = fresh(encoder_config("bert", "BertModel"));
  EXPECT_ERROR(models::Chat(*encoder, letters(), std::nullopt), ArgumentError,
               "Chat: expected a model that writes text, got bert");
}

}  // namespace
}  // namespace samebytes::testing
