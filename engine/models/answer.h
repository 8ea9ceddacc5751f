// What the texts of a decoder share, one by one (generate(), Chat) or several at once (TextBatch): their generator, and
// the text of the tokens up to what ends it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nn/generate.h"
#include "samebytes/models/pretrained.h"
#include "samebytes/text/tokenizer.h"

namespace samebytes::models {

// Both must outlive it. Requires: a decoder, and a cache of it.
Generator generator_of(Pretrained& model, DecoderCache& cache);

// Lets text through that cannot become one of the words that end it.
class StopWords {
 public:
  explicit StopWords(std::vector<std::string> words);
  // What can be shown now.
  std::string add(const std::string& text);
  std::string finish() { return std::exchange(held_, {}); }
  bool has_stopped() const { return has_stopped_; }

 private:
  std::vector<std::string> words_;
  std::string held_;
  bool has_stopped_ = false;
};

// The text of tokens as they come.
class Answer {
 public:
  struct Options {
    std::vector<std::int32_t> ends = {};  // tokens that end it
    std::vector<std::string> stop = {};
    std::function<bool(std::string_view text)> on_text = {};
  };
  Answer(text::Tokenizer tokenizer, Options options);
  bool add(std::int32_t id);  // whether it goes on
  void finish();              // tells what was held back
  const std::string& text() const { return text_; }

 private:
  bool tell(const std::string& text);
  text::TextStream stream_;
  StopWords stop_;
  Options options_;
  std::string text_;
};

}  // namespace samebytes::models
