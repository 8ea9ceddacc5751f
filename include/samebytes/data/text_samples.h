// Samples for fine-tuning a language model: a prompt and its answer as token ids, of which the loss counts the answer's
// alone, and rows of a fixed length that short samples share.
//   std::vector<data::TextSample> samples = data::read_text_samples("chat.jsonl");
//   const data::TextRows rows = data::text_rows(samples, {.context = 512});
//   data::Loader loader(rows.set, {.batch = 1, .shuffle = true});
//   for (const data::Batch& batch : loader)
//     models::text_loss(model, {.x = batch[0], .texts = rows.is_packed ? batch[2] : Array{}}, batch[1]);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "samebytes/data/dataset.h"
#include "samebytes/text/chat_template.h"
#include "samebytes/text/tokenizer.h"

namespace samebytes::data {

// A text in pieces, in their order: of a chat each turn, of which those of the model count.
struct TextSample {
  struct Piece {
    std::vector<std::int32_t> ids;
    bool counts = false;  // the loss counts the prediction of these tokens
  };
  std::vector<Piece> pieces;
};
// A prompt that does not count and an answer that does.
TextSample prompt_and_answer(std::vector<std::int32_t> prompt, std::vector<std::int32_t> answer);

// A JSON object a line: {"prompt": [ids], "answer": [ids]}, or {"pieces": [{"ids": [ids], "counts": true}, ...]}. Empty
// lines are ignored. Throws IoError, naming file and line, for a missing file, other JSON, ids that are no whole
// numbers from 0 to 2^31 - 1, and a file without samples.
std::vector<TextSample> read_text_samples(const std::string& path);

// What chats become samples with.
struct ChatReader {
  text::Tokenizer tokenizer;
  std::optional<text::ChatTemplate> chat_template = {};
  std::optional<std::int32_t> end = {};  // ends an answer that no template ends
};
// Of texts, a JSON object a line, as data sets of chats come:
//   {"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}, ...]}
//   {"prompt": "...", "answer": "..."}  or "completion" for "answer"
//   {"instruction": "...", "input": "...", "output": "..."}
//   {"text": "..."}  all of which counts
// What the template writes for each assistant's message counts, the rest does not; the second and third form are such a
// conversation where there is a template, else the two texts with `end` behind them. Throws IoError, naming file and
// line, for other JSON, for messages without a template, and for what the template refuses.
std::vector<TextSample> read_chats(const std::string& path, const ChatReader& reader);
// The sample of a conversation; messages as JSON (ChatTemplate::apply_json). Throws what the template throws, and Error
// if the conversation without its last messages is not where the whole of it begins, so that answers have no place.
TextSample chat_sample(std::string_view messages, const ChatReader& reader);

constexpr std::int32_t kIgnoredLabel = -100;  // as models::kNoLabel

struct TextRowOptions {
  std::int64_t context = 512;  // tokens of a row
  bool packs = true;           // puts several samples into a row where they fit
  std::int32_t padding = 0;    // the id behind the last sample of a row
};
struct TextRows {
  DatasetPtr set;  // fields "ids", "labels" and "texts", each i32 [context]
  std::int64_t rows = 0;
  std::int64_t samples = 0;  // in the rows
  std::int64_t cut = 0;      // ... of which lost tokens behind the context
  std::int64_t dropped = 0;  // samples without a counting token within the context
  std::int64_t tokens = 0;   // without padding
  std::int64_t counted = 0;  // tokens whose prediction counts
  bool is_packed = false;    // whether a row has several samples
};
// The samples as rows: "labels" has the ids that count and kIgnoredLabel elsewhere, the first token of a sample
// included, which nothing predicts; "texts" numbers the samples of a row from 0, padding as one more. With `packs`,
// long samples first, each goes into the first row that has room (first fit, decreasing), so the rows follow from the
// samples alone. Throws ArgumentError for a context below 2, a negative padding and when no sample is left.
TextRows text_rows(const std::vector<TextSample>& samples, const TextRowOptions& options = {});

}  // namespace samebytes::data
