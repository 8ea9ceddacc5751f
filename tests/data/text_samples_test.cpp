// Prompts and answers as rows of token ids: which tokens count, packing, and files.
#include "samebytes/data/text_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "samebytes/data/sets.h"
#include "support/errors.h"
#include "support/files.h"

namespace samebytes::data {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using testing::put;
using testing::TemporaryFolder;

constexpr std::int32_t kNo = kIgnoredLabel;

struct Row {
  std::vector<std::int32_t> ids, labels, texts;
};
Row row_of(const TextRows& rows, std::int64_t index) {
  const std::int64_t context = rows.set->fields()[0].shape[0];
  Row row;
  for (auto* values : {&row.ids, &row.labels, &row.texts}) values->resize(static_cast<std::size_t>(context));
  const Field fields[] = {{std::as_writable_bytes(std::span(row.ids)), {context}, i32},
                          {std::as_writable_bytes(std::span(row.labels)), {context}, i32},
                          {std::as_writable_bytes(std::span(row.texts)), {context}, i32}};
  EXPECT_TRUE(rows.set->read(index, fields));
  return row;
}

TEST(TextSamples, the_loss_counts_the_answers_alone) {
  const TextSample chat{.pieces = {{{1, 2}, false}, {{3, 4}, true}, {{5}, false}, {{6}, true}}};
  const TextRows rows = text_rows({prompt_and_answer({7, 8, 9}, {10, 11}), chat}, {.context = 8, .packs = false});
  EXPECT_EQ(rows.rows, 2);
  EXPECT_FALSE(rows.is_packed);
  EXPECT_EQ(rows.tokens, 11);
  EXPECT_EQ(rows.counted, 5);
  const Row first = row_of(rows, 0), second = row_of(rows, 1);
  EXPECT_THAT(first.ids, ElementsAre(7, 8, 9, 10, 11, 0, 0, 0));
  EXPECT_THAT(first.labels, ElementsAre(kNo, kNo, kNo, 10, 11, kNo, kNo, kNo));
  EXPECT_THAT(first.texts, ElementsAre(0, 0, 0, 0, 0, 1, 1, 1));
  EXPECT_THAT(second.labels, ElementsAre(kNo, kNo, 3, 4, kNo, 6, kNo, kNo));
}

TEST(TextSamples, short_samples_share_rows_and_nothing_predicts_their_first_tokens) {
  const TextRows rows = text_rows({prompt_and_answer({}, {1, 2, 3}), prompt_and_answer({4}, {5}),
                                   prompt_and_answer({6, 7}, {8, 9}), prompt_and_answer({10}, {11, 12})},
                                  {.context = 7, .padding = 99});
  EXPECT_EQ(rows.rows, 2);
  EXPECT_EQ(rows.samples, 4);
  EXPECT_TRUE(rows.is_packed);
  const Row first = row_of(rows, 0), second = row_of(rows, 1);
  EXPECT_THAT(first.ids, ElementsAre(6, 7, 8, 9, 1, 2, 3));
  EXPECT_THAT(first.labels, ElementsAre(kNo, kNo, 8, 9, kNo, 2, 3));
  EXPECT_THAT(first.texts, ElementsAre(0, 0, 0, 0, 1, 1, 1));
  EXPECT_THAT(second.ids, ElementsAre(10, 11, 12, 4, 5, 99, 99));
  EXPECT_THAT(second.texts, ElementsAre(0, 0, 0, 1, 1, 2, 2));
}

TEST(TextSamples, packing_loses_no_token_and_fills_most_of_the_rows) {
  std::vector<TextSample> samples;
  std::int64_t all = 0;
  for (std::int32_t i = 0; i < 400; ++i) {
    std::vector<std::int32_t> answer(static_cast<std::size_t>(1 + i * 37 % 60));
    std::iota(answer.begin(), answer.end(), i * 100);
    all += static_cast<std::int64_t>(answer.size()) + 1;
    samples.push_back(prompt_and_answer({i}, std::move(answer)));
  }
  const TextRows rows = text_rows(samples, {.context = 64});
  EXPECT_EQ(rows.tokens, all);
  EXPECT_EQ(rows.samples, 400);
  EXPECT_EQ(rows.counted, all - 400);
  EXPECT_LT(rows.rows * 64, all + all / 20);
  std::int64_t counted = 0;
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    const Row row = row_of(rows, i);
    counted += std::count_if(row.labels.begin(), row.labels.end(), [](std::int32_t v) { return v != kNo; });
  }
  EXPECT_EQ(counted, rows.counted);
}

TEST(TextSamples, long_samples_are_cut_and_those_without_an_answer_are_dropped) {
  const TextRows rows = text_rows({prompt_and_answer({1}, {2, 3, 4, 5}), prompt_and_answer({1, 2, 3}, {4})},
                                  {.context = 3, .packs = false});
  EXPECT_EQ(rows.rows, 1);
  EXPECT_EQ(rows.cut, 1);
  EXPECT_EQ(rows.dropped, 1);
  EXPECT_THAT(row_of(rows, 0).labels, ElementsAre(kNo, 2, 3));
  EXPECT_ERROR(text_rows({prompt_and_answer({1, 2}, {3})}, {.context = 2}), ArgumentError,
               "text_rows: none of 1 samples has a token that counts within the context of 2");
  EXPECT_ERROR(text_rows({}, {.context = 1}), ArgumentError, "text_rows: context must be 2 or more, got 1");
  EXPECT_ERROR(text_rows({}, {.padding = -1}), ArgumentError, "text_rows: padding must be 0 or more, got -1");
}

TEST(TextSamples, files_have_a_sample_a_line) {
  const TemporaryFolder folder;
  const std::string path = folder / "chat.jsonl";
  put(path,
      "{\"prompt\": [1, 2], \"answer\": [3]}\n\n"
      "{\"pieces\": [{\"ids\": [4]}, {\"ids\": [5, 6], \"counts\": true}]}");
  const std::vector<TextSample> samples = read_text_samples(path);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_THAT(samples[0].pieces[1].ids, ElementsAre(3));
  EXPECT_TRUE(samples[0].pieces[1].counts);
  EXPECT_FALSE(samples[1].pieces[0].counts);
  EXPECT_THAT(samples[1].pieces[1].ids, ElementsAre(5, 6));
  for (const auto& [text, error] :
       {std::pair<const char*, const char*>{"", "expected samples, one a line, found none"},
        {"[1]\n", "expected an object with prompt and answer, or with pieces"},
        {"{\"prompt\": [1], \"answer\": [-1]}", "expected token ids from 0 to 2^31 - 1"},
        {"{\"prompt\": [1], \"answer\": [1.5]}", "expected token ids from 0 to 2^31 - 1"},
        {"{\"prompt\": [1], \"answer\": [2147483648]}", "expected token ids from 0 to 2^31 - 1"},
        {"{\"prompt\": 1, \"answer\": [1]}", "expected a list of token ids"},
        {"{\"pieces\": [{\"counts\": true}]}", "expected pieces with ids and counts"},
        {"{\"prompt\": [1], \"answer\": [2]}\n{", "expected JSON"}}) {
    put(path, text);
    EXPECT_THAT(message_of<IoError>([&] { read_text_samples(path); }), HasSubstr(error)) << text;
  }
}

// A token for each character that is there, and one for each mark.
text::Tokenizer small_tokenizer() {
  return text::Tokenizer::parse("tokenizer.json", R"({"version": "1.0",
    "added_tokens": [{"id": 9, "content": "<q>", "single_word": false, "lstrip": false, "rstrip": false,
                      "normalized": false, "special": true},
                     {"id": 8, "content": "<a>", "single_word": false, "lstrip": false, "rstrip": false,
                      "normalized": false, "special": true}],
    "normalizer": null, "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
    "model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "x": 1, "y": 2, "z": 3, "!": 4, "<a>": 8, "<q>": 9}}})");
}

TEST(TextSamples, chats_count_what_the_template_writes_for_answers) {
  const ChatReader reader{
      .tokenizer = small_tokenizer(),
      .chat_template = text::ChatTemplate::parse(
          "x.jinja",
          "{% for m in messages %}{{ '<q>' if m.role == 'user' else '<a>' }}{{ m.content + ' ! ' }}{% endfor %}"
          "{{ '<a>' if add_generation_prompt }}")};
  const TemporaryFolder folder;
  const std::string path = folder / "chat.jsonl";
  put(path,
      R"({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"},)"
      R"( {"role": "user", "content": "z"}, {"role": "assistant", "content": "x x"}, {"role": "user", "content": "y"}]})"
      "\n"
      R"({"prompt": "x", "completion": "z"})"
      "\n"
      R"({"instruction": "x", "input": "y", "output": "z"})"
      "\n"
      R"({"text": "x y"})");
  const std::vector<TextSample> samples = read_chats(path, reader);
  ASSERT_EQ(samples.size(), 4u);
  std::vector<std::int32_t> ids, counted;
  for (const TextSample::Piece& piece : samples[0].pieces)
    for (const std::int32_t id : piece.ids) {
      ids.push_back(id);
      if (piece.counts) counted.push_back(id);
    }
  EXPECT_THAT(ids, ElementsAre(9, 1, 4, 8, 2, 4, 9, 3, 4, 8, 1, 1, 4, 9, 2, 4));
  EXPECT_THAT(counted, ElementsAre(2, 4, 1, 1, 4));
  ASSERT_EQ(samples[1].pieces.size(), 2u);
  EXPECT_THAT(samples[1].pieces[0].ids, ElementsAre(9, 1, 4, 8));
  EXPECT_THAT(samples[1].pieces[1].ids, ElementsAre(3, 4));
  EXPECT_THAT(samples[2].pieces[0].ids, ElementsAre(9, 1, 2, 4, 8));
  EXPECT_TRUE(samples[3].pieces[0].counts);

  const ChatReader plain{.tokenizer = small_tokenizer(), .end = 7};
  put(path, R"({"prompt": "x", "answer": "z"})");
  EXPECT_THAT(read_chats(path, plain)[0].pieces[1].ids, ElementsAre(3, 7));
  put(path, R"({"messages": [{"role": "user", "content": "x"}]})");
  EXPECT_THAT(message_of<IoError>([&] { read_chats(path, plain); }),
              HasSubstr("expected a chat template for messages"));
  put(path, "{\"prompt\": \"x\", \"answer\": \"y\"}\n{\"x\": 1}");
  EXPECT_THAT(message_of<IoError>([&] { read_chats(path, plain); }), HasSubstr("found line 2"));
  // What was written for an answer changes when more follows.
  const ChatReader changing{.tokenizer = small_tokenizer(),
                            .chat_template = text::ChatTemplate::parse("x.jinja", "{{ messages | length }}")};
  EXPECT_THAT(message_of<IoError>([&] { read_chats(path, changing); }), HasSubstr("differently when more follows"));
}

}  // namespace
}  // namespace samebytes::data
