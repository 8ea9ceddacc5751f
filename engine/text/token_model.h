// The last step of a tokenizer: from a word to the numbers of its tokens. tokenizer.json has four kinds: BPE,
// WordPiece, Unigram and WordLevel.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/json_part.h"
#include "text/vocabulary.h"

namespace samebytes::detail {

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the tokens of a word in UTF-8, or of bytes where takes_bytes(). Throws Error if the model lacks the token
  // for what it does not know.
  virtual void encode(std::string_view word, std::vector<std::int32_t>& ids) const = 0;
  // Whether words are bytes as they are, instead of GPT-2's characters for them.
  virtual bool takes_bytes() const { return false; }
  // Whether a word may be cut before each run of U+2581 without a change, since nothing is merged over such a place.
  virtual bool cuts_at_metaspace() const { return false; }

  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  Vocabulary vocabulary_;
};

// `is_byte_level`: the words come from GPT-2's characters for bytes.
std::unique_ptr<TokenModel> make_token_model(const JsonPart& part, bool is_byte_level);
std::unique_ptr<TokenModel> make_bpe(const JsonPart& part, bool is_byte_level);
std::unique_ptr<TokenModel> make_word_piece(const JsonPart& part);
std::unique_ptr<TokenModel> make_word_level(const JsonPart& part);
std::unique_ptr<TokenModel> make_unigram(const JsonPart& part);

// What "vocab" says: an object of tokens and their numbers.
Vocabulary read_vocabulary(const JsonPart& part);
// The numbers of <0x00> to <0xFF>; Vocabulary::kNone for those that are not there.
std::vector<std::int32_t> fallback_tokens(const Vocabulary& vocabulary);
// The number of the token under this key; kNone if the key is not there, IoError if the vocabulary has no such token.
std::int32_t named_token(const JsonPart& part, const char* key, const Vocabulary& vocabulary);

}  // namespace samebytes::detail
