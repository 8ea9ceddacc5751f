// Tokenizers of published models: tokenizer.json of Hugging Face, with the ids of the Python package `tokenizers`, and
// those of GGUF files.
// Byte-level BPE (GPT-2, Llama 3, Qwen), BPE and Unigram as SentencePiece has them, WordPiece (BERT), and whole words;
// with their normalizers, pre-tokenizers, templates, decoders and added tokens.
//   const auto tokenizer = text::Tokenizer::load("Qwen2.5-0.5B");
//   const std::vector<std::int32_t> ids = tokenizer.encode("Hello world").ids;
//   const std::string same = tokenizer.decode(ids);
// A tokenizer is a value; several threads may encode with one at once. docs/language_models.md has the comparison.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace samebytes::detail {
class JsonPart;
}

namespace samebytes::text {

struct Encoding {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> types;  // 1 for what comes from the second text of a pair (token_type_ids), by the template
  std::vector<std::int32_t> mask;   // 1 for tokens, 0 for padding (attention_mask)
};

enum class Side : std::uint8_t { left, right };
enum class TruncationStrategy : std::uint8_t { longest_first, only_first, only_second };

// Cuts tokens off this side so that, with those of the template, at most max_length are left.
struct Truncation {
  std::int64_t max_length = 512;
  TruncationStrategy strategy = TruncationStrategy::longest_first;
  Side side = Side::right;
};

// Adds tokens on this side up to a common length: the longest encoding of a batch, or at least `length`.
struct Padding {
  std::int64_t length = 0;       // 0: the longest of the batch
  std::int64_t multiple_of = 0;  // lengths are rounded up to it; 0: they are not
  Side side = Side::right;
  std::int32_t id = 0;
  std::int32_t type = 0;
};

struct EncodeOptions {
  bool add_special_tokens = true;  // those of the template: [CLS], <s>, ...
};
struct DecodeOptions {
  bool skip_special_tokens = true;
};

class Tokenizer {
 public:
  // A tokenizer.json, a folder that has one, or a GGUF file, whose tokenizer.ggml.* say the same in fewer words (of the
  // kinds gpt2, llama and bert). Throws IoError for a missing or damaged file, naming the place in it, and for a step
  // that it asks for and this version does not have.
  static Tokenizer load(const std::string& path);
  // The same of a text; `path` stands for its file in errors.
  static Tokenizer parse(const std::string& path, std::string_view json);

  // Tokens of the model and added ones; ids may have gaps, so the largest may be larger.
  std::int64_t size() const;
  std::int64_t largest_id() const;

  // Any bytes: those that are not UTF-8 count as U+FFFD, as Python decodes them with errors="replace". Truncation and
  // padding are the file's unless they were set. Throws Error if the model has no token for something and none for what
  // is unknown, if a pattern of the file takes too many steps, and if a truncation leaves nothing of a text.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  Encoding encode(std::string_view text, std::string_view second, const EncodeOptions& options = {}) const;
  // Padded to one length where padding is set.
  std::vector<Encoding> encode_batch(std::span<const std::string> texts, const EncodeOptions& options = {}) const;

  // The text of the tokens. Ids without a token count for nothing.
  std::string decode(std::span<const std::int32_t> ids, const DecodeOptions& options = {}) const;

  std::optional<std::int32_t> id(std::string_view token) const;
  std::optional<std::string> token(std::int32_t id) const;
  bool is_special(std::int32_t id) const;

  const std::optional<Truncation>& truncation() const;
  const std::optional<Padding>& padding() const;
  // Throw ArgumentError for lengths below 0 or above 2^24, and a truncation to less than the template's tokens.
  void set_truncation(std::optional<Truncation> truncation);
  void set_padding(std::optional<Padding> padding);

 private:
  struct State;
  void read(const detail::JsonPart& file);
  std::shared_ptr<const State> state_;
  std::optional<Truncation> truncation_;
  std::optional<Padding> padding_;
};

// The tokenizer of a GGUF file as the texts of the files that a folder has for it. Throws IoError as Tokenizer::load().
struct TokenizerFiles {
  std::string tokenizer;  // tokenizer.json
  std::string config;     // tokenizer_config.json, with the chat template where there is one
};
TokenizerFiles gguf_tokenizer_files(const std::string& path);

// The text of tokens that come one by one, as a model writes them: each call returns what the token adds, which is
// empty until its characters are whole.
class TextStream {
 public:
  explicit TextStream(Tokenizer tokenizer, const DecodeOptions& options = {});
  std::string add(std::int32_t id);
  std::string finish();  // what was held back

 private:
  Tokenizer tokenizer_;
  DecodeOptions options_;
  std::vector<std::int32_t> ids_;  // those whose text the next one may change
  std::string before_;             // the text of those that were written
  std::size_t written_ = 0;        // ids of them
};

}  // namespace samebytes::text
