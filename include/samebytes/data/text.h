// Tokenizers for text (characters, GPT-2's byte pairs), and windows of token ids to train a language model.
//   const std::string text = data::read_text("data/text/tinyshakespeare.txt");
//   const auto characters = data::CharTokenizer::from_text(text);
//   const data::Split parts = data::token_split(characters.encode(text), 256);
// Tokenizers are const after construction; several threads may use them at once.
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

// A file's bytes, unpacked if it is gzip. Throws IoError.
std::string read_text(const std::string& path);

// One token per distinct Unicode character, numbered in the order of the code points.
class CharTokenizer {
 public:
  // The characters of a text in UTF-8. Throws ArgumentError, naming the byte, for text that is not UTF-8.
  static CharTokenizer from_text(std::string_view text);
  // {"characters": ["\n", " ", ...]}: one string per token, in the order of the ids. Throws IoError for a missing or
  // damaged file, for strings that are not one character, and for a duplicate character.
  static CharTokenizer load(const std::string& path);
  void save(const std::string& path) const;  // atomically; throws IoError

  std::int32_t size() const { return static_cast<std::int32_t>(characters_.size()); }
  // Throws ArgumentError for a character that is not in the vocabulary, naming the character and its byte offset.
  std::vector<std::int32_t> encode(std::string_view text) const;
  // Throws ArgumentError for an id that does not exist.
  std::string decode(std::span<const std::int32_t> ids) const;

 private:
  std::vector<char32_t> characters_;                    // of each token
  std::vector<std::pair<char32_t, std::int32_t>> ids_;  // sorted by character
};

// Byte-level byte pair encoding as in GPT-2 (Radford et al., "Language Models are Unsupervised Multitask Learners",
// 2019; encoder.py in its repository), token for token.
class BpeTokenizer {
 public:
  // vocab.json: an object that maps tokens, written in GPT-2's characters for bytes, to their ids 0 to size - 1.
  // merges.txt: after an optional line "#version", one pair per line, in order of priority. Throws IoError for a
  // missing or damaged file, ids with gaps or repetitions, and pairs that the vocabulary lacks.
  static BpeTokenizer load(const std::string& vocab_path, const std::string& merges_path);

  std::int32_t size() const;
  // Accepts any bytes; those that are not UTF-8 count as neither letters, numbers nor blanks. Special tokens such as
  // <|endoftext|> are ordinary text here: see id(). Throws ArgumentError if the vocabulary lacks a token for a byte of
  // the text (GPT-2's has all 256).
  std::vector<std::int32_t> encode(std::string_view text) const;
  // The tokens' bytes one after another: decode(encode(text)) == text. Throws ArgumentError for an id that does not
  // exist.
  std::string decode(std::span<const std::int32_t> ids) const;
  // The id of a token as vocab.json writes it: id("<|endoftext|>"), id("\u0120the").
  std::optional<std::int32_t> id(std::string_view token) const;

  // The pieces into which encode() splits text before it merges bytes: contractions; letters, numbers or other
  // characters with one optional blank before them; and blanks ('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+|
  // ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+).
  static std::vector<std::string_view> split(std::string_view text);

 private:
  struct Tables;
  std::shared_ptr<const Tables> tables_;
};

// Windows over a text's token ids: sample i has the fields "ids" [T], tokens i * stride to i * stride + T - 1, and
// "target" [T], their successors; both i32. T is `context`; stride 0 means T, so that each token is a target once.
// Throws ArgumentError for a context below 1, a negative stride, and fewer than T + 1 tokens.
DatasetPtr token_windows(std::vector<std::int32_t> ids, std::int64_t context, std::int64_t stride = 0);

struct TokenSplitOptions {
  double validation = 0.1;  // share of the tokens, at the end of the text, for the test part
  std::int64_t stride = 0;  // of the training windows, as in token_windows; the test windows do not overlap
};
// The beginning of a text for training and its end for validation. Throws as token_windows does for each part, and
// ArgumentError for a share that is not between 0 and 1.
Split token_split(std::vector<std::int32_t> ids, std::int64_t context, const TokenSplitOptions& options = {});

}  // namespace samebytes::data
