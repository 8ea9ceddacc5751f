// Several texts of one model at once: each is the text of its prompt alone, whenever it joins and leaves.
#include "samebytes/models/text_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/folders.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

using ::testing::ElementsAre;
using Ids = std::vector<std::int32_t>;

class TextBatchTest : public OnDevice {
 protected:
  static models::GenerateOptions greedy(std::int64_t tokens) { return {.tokens = tokens, .temperature = 0}; }
};
SAMEBYTES_ON_EVERY_DEVICE(TextBatchTest);

Ids prompt_of(std::int32_t first, std::int64_t length) {
  Ids ids;
  for (std::int64_t i = 0; i < length; ++i) ids.push_back(static_cast<std::int32_t>((first + i * 7) % 29));
  return ids;
}

std::unique_ptr<models::Pretrained> tiny_model(const std::string& type) {
  Json config = decoder_config(type, type == "gpt2" ? "GPT2LMHeadModel" : "LlamaForCausalLM");
  if (type == "gpt2") config.update({{"n_embd", 16}, {"n_head", 4}, {"n_layer", 2}, {"n_positions", 64}});
  return fresh(config);
}

TEST_P(TextBatchTest, texts_that_join_and_leave_are_those_of_their_prompts_alone) {
  for (const char* type : {"llama", "gpt2"}) {
    const auto model = tiny_model(type);
    struct Case {
      Ids prompt;
      models::GenerateOptions sampling;
    };
    const Case cases[] = {{prompt_of(3, 4), greedy(9)},
                          {prompt_of(5, 11), greedy(3)},  // its prompt is read in three parts
                          {prompt_of(8, 1), greedy(12)},
                          {prompt_of(2, 6), {.tokens = 6, .temperature = 0.8, .top_k = 5, .seed = 4}},
                          {prompt_of(9, 2), {.tokens = 7, .temperature = 0, .repetition_penalty = 1.4}}};
    models::TextBatch batch(*model, {}, {.streams = 3, .context = 32, .prompt_chunk = 4});
    std::vector<std::int64_t> ids;
    std::size_t most = 0;
    for (const Case& one : cases) {
      ids.push_back(batch.add({.prompt = one.prompt, .sampling = one.sampling}));
      if (ids.size() > 2) batch.step();  // others have begun when the last ones come
    }
    while (batch.step()) most = std::max(most, static_cast<std::size_t>(batch.running()));
    EXPECT_EQ(most, 3u);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto result = batch.take(ids[i]);
      ASSERT_TRUE(result.has_value()) << i;
      EXPECT_EQ(result->ids, models::generate(*model, cases[i].prompt, cases[i].sampling)) << type << " " << i;
      EXPECT_EQ(result->tokens, cases[i].sampling.tokens);
      EXPECT_EQ(result->prompt_tokens, static_cast<std::int64_t>(cases[i].prompt.size()));
      EXPECT_FALSE(batch.take(ids[i]).has_value());
    }
  }
}

// Parts of several prompts in one pass, some longer than a part and some not.
TEST_P(TextBatchTest, prompts_that_are_read_together_give_the_texts_of_each_alone) {
  for (const char* type : {"llama", "gpt2"}) {
    const auto model = tiny_model(type);
    const Ids prompts[] = {prompt_of(3, 4), prompt_of(5, 23), prompt_of(8, 2), prompt_of(2, 6), prompt_of(1, 7)};
    models::TextBatch batch(*model, {}, {.streams = 5, .context = 48, .prompt_chunk = 12});
    std::vector<std::int64_t> ids;
    for (const Ids& prompt : prompts) ids.push_back(batch.add({.prompt = prompt, .sampling = greedy(8)}));
    while (batch.step()) {
    }
    for (std::size_t i = 0; i < ids.size(); ++i)
      EXPECT_EQ(batch.take(ids[i])->ids, models::generate(*model, prompts[i], greedy(8))) << type << " " << i;
    // Wrong counts.
    models::DecoderCache first = model->make_cache(1, 8), second = model->make_cache(1, 8);
    models::DecoderCache* const caches[] = {&first, &second};
    const Array tokens = array(prompt_of(1, 4), {1, 4});
    for (const std::vector<std::int64_t>& counts : {std::vector<std::int64_t>{4}, {1, 2}, {4, 0}, {1, 1, 2}})
      EXPECT_THROW(model->forward_texts(tokens, counts, caches), ArgumentError);
    EXPECT_EQ(model->forward_texts(tokens, std::vector<std::int64_t>{1, 3}, caches).shape()[0], 2);
  }
}

TEST_P(TextBatchTest, windows_and_full_caches_are_as_alone) {
  Json config = decoder_config("mistral", "MistralForCausalLM");
  config["sliding_window"] = 5;
  const auto model = fresh(config);
  const Ids first = prompt_of(4, 9), second = prompt_of(6, 3);
  models::TextBatch batch(*model, {}, {.streams = 2, .context = 64});
  const auto a = batch.add({.prompt = first, .sampling = greedy(20)});
  const auto b = batch.add({.prompt = second, .sampling = greedy(10)});
  while (batch.step()) {
  }
  EXPECT_EQ(batch.take(a)->ids, models::generate(*model, first, greedy(20)));
  EXPECT_EQ(batch.take(b)->ids, models::generate(*model, second, greedy(10)));
  // Longer than the cache: on from the last half of it.
  models::TextBatch small(*model, {}, {.streams = 2, .context = 8});
  const auto c = small.add({.prompt = second, .sampling = greedy(30)});
  const auto d = small.add({.prompt = first, .sampling = greedy(3)});
  while (small.step()) {
  }
  EXPECT_EQ(small.take(c)->tokens, 30);
  EXPECT_EQ(small.take(d)->tokens, 3);
}

TEST_P(TextBatchTest, each_text_has_its_own_end) {
  const auto model = fresh(decoder_config("llama", "LlamaForCausalLM"));
  const Ids prompt = prompt_of(3, 4);
  const Ids whole = models::generate(*model, prompt, greedy(8));
  models::TextBatch batch(*model, {}, {.streams = 4});
  int told = 0;
  models::GenerateOptions two = greedy(8);
  two.on_token = [&](std::int32_t) { return ++told < 2; };
  models::GenerateOptions failing = greedy(8);
  failing.on_token = [](std::int32_t) -> bool { throw Error("enough"); };
  const auto stopped = batch.add({.prompt = prompt, .sampling = two});
  const auto ended = batch.add({.prompt = prompt, .sampling = greedy(8), .ends = {whole[6]}});
  const auto failed = batch.add({.prompt = prompt, .sampling = failing});
  const auto all = batch.add({.prompt = prompt, .sampling = greedy(8)});
  const auto cancelled = batch.add({.prompt = prompt, .sampling = greedy(8)});
  EXPECT_EQ(batch.waiting(), 5);
  batch.step();
  batch.cancel(cancelled);
  while (batch.step()) {
  }
  EXPECT_EQ(batch.take(stopped)->tokens, 2);
  const Ids short_one = batch.take(ended)->ids;
  EXPECT_EQ(short_one.back(), whole[6]);
  EXPECT_LE(short_one.size(), 7u);
  EXPECT_ERROR(batch.take(failed), Error, "enough");
  EXPECT_EQ(batch.take(all)->ids, whole);
  EXPECT_TRUE(batch.take(cancelled)->is_cancelled);
}

TEST_P(TextBatchTest, wrong_requests_are_refused_where_they_are_made) {
  const auto model = fresh(decoder_config("llama", "LlamaForCausalLM"));
  models::TextBatch batch(*model);
  EXPECT_ERROR(batch.add({}), ArgumentError, "generate: the prompt needs at least one id, got none");
  EXPECT_ERROR(batch.add({.prompt = {29}}), ArgumentError, "generate: ids must be in [0, 29), got 29");
  EXPECT_ERROR(batch.add({.prompt = {1}, .stop = {"x"}}), ArgumentError,
               "TextBatch: stop and on_text need a tokenizer");
  EXPECT_FALSE(batch.step());
  const auto encoder = fresh(encoder_config("bert", "BertModel"));
  EXPECT_ERROR(models::TextBatch(*encoder), ArgumentError, "TextBatch: expected a decoder, got bert");
  EXPECT_ERROR(
      models::TextBatch(*model, {}, {.streams = 0}), ArgumentError,
      "TextBatch: expected streams and prompt_chunk of 1 or more and a context of 0 or more, got 0, 256 and 0");
}

TEST_P(TextBatchTest, a_prompt_in_parts_needs_less_memory_and_gives_the_same_text) {
  Json config = decoder_config("llama", "LlamaForCausalLM");
  config.update({{"max_position_embeddings", 4096}, {"intermediate_size", 512}});
  const auto own = make_engine(GetParam());  // whose peak is this test's
  const EngineScope scope(*own);
  const auto model = fresh(config);
  model->eval();
  const Ids prompt = prompt_of(3, 500);
  const std::size_t before = own->memory().live_bytes;
  const auto run = [&](std::int64_t chunk) {
    Ids ids = models::generate(*model, prompt, {.tokens = 3, .temperature = 0, .prompt_chunk = chunk});
    return std::pair(std::move(ids), own->memory().peak_bytes - before);
  };
  const auto [parts, little] = run(64);
  const auto [whole, much] = run(0);
  EXPECT_EQ(parts, whole);
  EXPECT_LT(little * 2, much);
}

}  // namespace
}  // namespace samebytes::testing
