// Several texts of one language model at once, with continuous batching: a request joins as soon as a stream is free
// and leaves when its text ends, while the others go on. Each has its own sampling, stop words and callbacks. A step
// reads the weights once for all streams: eight texts of a quantised model take about three steps of one.
//   models::TextBatch batch(*model, tokenizer, {.streams = 8});
//   const auto id = batch.add({.prompt = tokenizer.encode("Once").ids, .sampling = {.tokens = 50, .temperature = 0}});
//   while (batch.step()) {}
//   std::cout << batch.take(id)->text;
// A greedy text is that of generate() with the same prompt. Use it from one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "samebytes/models/pretrained.h"
#include "samebytes/text/tokenizer.h"

namespace samebytes::models {

struct TextBatchOptions {
  std::int64_t streams = 8;  // texts at once
  // Tokens of a stream's cache, which is made when the stream is first used: 2 x layers x key heads x head size x 4
  // bytes a token. A longer text goes on from its last half. 0: the model's context, 2048 at most.
  std::int64_t context = 0;
  std::int64_t prompt_chunk = 256;  // tokens of joining prompts that are read together between two steps of the others
};

struct TextRequest {
  std::vector<std::int32_t> prompt = {};
  GenerateOptions sampling = {};        // on_token is called, too; false ends the text. prompt_chunk is the batch's
  std::vector<std::int32_t> ends = {};  // tokens that end the text, beside those of the config
  std::vector<std::string> stop = {};   // texts that end it; they do not belong to it. Need a tokenizer
  // Called with what the text gets, in whole characters; false ends it. Needs a tokenizer.
  std::function<bool(std::string_view text)> on_text = {};
};

struct TextResult {
  std::vector<std::int32_t> ids;  // the prompt's and the generated ones
  std::string text;               // of the generated ones, up to what ends it; empty without a tokenizer
  std::int64_t prompt_tokens = 0, tokens = 0;
  bool is_cancelled = false;
};

// The model must outlive it; it is in evaluation mode during a step.
class TextBatch {
 public:
  // Throws ArgumentError for a model that is no decoder and for options out of range.
  explicit TextBatch(Pretrained& model, std::optional<text::Tokenizer> tokenizer = {},
                     const TextBatchOptions& options = {});
  ~TextBatch();
  TextBatch(const TextBatch&) = delete;
  TextBatch& operator=(const TextBatch&) = delete;

  // The number of the request, which waits until a stream is free; also from callbacks. Throws ArgumentError as
  // generate() does, and for texts without a tokenizer.
  std::int64_t add(TextRequest request);
  // The text ends where it is, before the next step.
  void cancel(std::int64_t id);
  // Reads parts of joining prompts, then a token of every other running text. Returns whether any is left. An error
  // of one text, also of its callbacks, ends that text alone: take() throws it. Throws what a failing device throws.
  bool step();
  // The result of a text that has ended, once; nothing for others. Throws what ended it.
  std::optional<TextResult> take(std::int64_t id);
  std::int64_t running() const;  // texts that have a stream
  std::int64_t waiting() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace samebytes::models
