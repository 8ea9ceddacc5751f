// Vectors of sentences, from texts: the tokenizer, the network and the pooling of a folder, as sentence-transformers
// has them, or of a GGUF file.
//   auto encoder = models::SentenceEncoder::load("all-MiniLM-L6-v2");
//   const HostArray vectors = encoder.encode({{"a text", "another one"}});   // f32 [2, 384]
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "samebytes/host_array.h"
#include "samebytes/models/pretrained.h"
#include "samebytes/text/tokenizer.h"

namespace samebytes::models {

struct SentenceEncoderOptions {
  PretrainedOptions model = {};
  // Unset: what 1_Pooling/config.json and modules.json say; the normalised mean where they are not there.
  std::optional<SentenceOptions> pooling = {};
  std::int64_t batch = 32;      // texts at once
  std::int64_t max_tokens = 0;  // of a text; 0: max_seq_length of sentence_bert_config.json, or the model's context
};

class SentenceEncoder {
 public:
  // Throws IoError, as from_pretrained() and Tokenizer::load() do, and for poolings that this version does not have.
  static SentenceEncoder load(const std::string& folder, const SentenceEncoderOptions& options = {});

  // f32 [texts, width], in the order of the texts; those of a like length are computed together. Between two batches
  // it asks should_stop; then the rest is zeros.
  HostArray encode(std::span<const std::string> texts, const std::function<bool()>& should_stop = {});
  Pretrained& model() { return *model_; }
  std::int64_t width() const { return width_; }

 private:
  SentenceEncoder(std::unique_ptr<Pretrained> model, text::Tokenizer tokenizer, const SentenceEncoderOptions& options)
      : model_(std::move(model)), tokenizer_(std::move(tokenizer)), options_(options) {}
  std::unique_ptr<Pretrained> model_;
  text::Tokenizer tokenizer_;
  SentenceEncoderOptions options_;
  SentenceOptions pooling_;
  std::int64_t width_ = 0;
};

}  // namespace samebytes::models
