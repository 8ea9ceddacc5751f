// Text as numbers: a character vocabulary, GPT-2's byte pairs, and the windows of token ids that a language model
// learns from.
//   const std::string text = data::read_text("data/text/tinyshakespeare.txt");
//   const auto characters = data::CharTokenizer::from_text(text);
//   const data::Split parts = data::token_split(characters.encode(text), 256);
// Tokenizers are const after construction and may be used by several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "samebytes/data/sets.h"

namespace samebytes::data {

// A file's bytes, unpacked where it is gzip. Throws IoError.
std::string read_text(const std::string& path);

// One token for each different Unicode character, numbered in the order of their code points.
class CharTokenizer {
 public:
  // The characters of a text in UTF-8. Throws ArgumentError, naming the byte, for text that is not UTF-8.
  static CharTokenizer from_text(std::string_view text);
  // {"characters": ["\n", " ", ...]}: one string for each token, in the order of their numbers. Throws IoError for a
  // missing or damaged file, for strings that are not one character, and for a character that comes twice.
  static CharTokenizer load(const std::string& path);
  void save(const std::string& path) const;  // atomically; throws IoError

  std::int32_t size() const { return static_cast<std::int32_t>(characters_.size()); }
  // Throws ArgumentError for a character that is not in the vocabulary, naming it and its byte.
  std::vector<std::int32_t> encode(std::string_view text) const;
  // Throws ArgumentError for a number that is no token.
  std::string decode(std::span<const std::int32_t> ids) const;

 private:
  std::vector<char32_t> characters_;                    // of each token
  std::vector<std::pair<char32_t, std::int32_t>> ids_;  // sorted by character
};

// Byte-level byte pair encoding as GPT-2 does it (Radford et al., "Language Models are Unsupervised Multitask
// Learners", 2019; encoder.py in its repository), token for token.
class BpeTokenizer {
 public:
  // vocab.json: an object of tokens, written in GPT-2's characters for bytes, with their numbers 0 to size - 1.
  // merges.txt: after an optional line "#version", one pair a line, the earlier the stronger. Throws IoError for a
  // missing or damaged file, numbers with gaps or repetitions, and pairs that the vocabulary does not have.
  static BpeTokenizer load(const std::string& vocab_path, const std::string& merges_path);

  std::int32_t size() const;
  // Any bytes; those that are not UTF-8 count as neither letters, numbers nor blanks. Special tokens such as
  // <|endoftext|> are ordinary text here: see id(). Throws ArgumentError where the vocabulary lacks a token for a byte
  // that came (GPT-2's has all 256).
  std::vector<std::int32_t> encode(std::string_view text) const;
  // The tokens' bytes one after another: decode(encode(text)) == text. Throws ArgumentError for a number that is no
  // token.
  std::string decode(std::span<const std::int32_t> ids) const;
  // The number of a token as vocab.json writes it: id("<|endoftext|>"), id("\u0120the").
  std::optional<std::int32_t> id(std::string_view token) const;

  // What encode() cuts text into before it merges bytes: contractions, and letters, numbers or other characters with
  // one blank before them, and blanks ('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+).
  static std::vector<std::string_view> split(std::string_view text);

 private:
  struct Tables;
  std::shared_ptr<const Tables> tables_;
};

// Windows over a text's token ids: sample i has the fields "ids" [T], tokens i * stride to i * stride + T - 1, and
// "target" [T], each one's successor; both i32. T is `context`; stride 0 is T, so that each token is a target once.
// Throws ArgumentError for a context below 1, a negative stride, and fewer than T + 1 tokens.
DatasetPtr token_windows(std::vector<std::int32_t> ids, std::int64_t context, std::int64_t stride = 0);

struct TokenSplitOptions {
  double validation = 0.1;  // this share of the tokens, from the end of the text, is the test part
  std::int64_t stride = 0;  // of the training windows, as in token_windows; those of the test part do not overlap
};
// The beginning of a text for training and its end for validation. Throws as token_windows does for either part, and
// for a share that is not between 0 and 1.
Split token_split(std::vector<std::int32_t> ids, std::int64_t context, const TokenSplitOptions& options = {});

}  // namespace samebytes::data
