// Tokens beside the model's, found in a text before it is cut: special ones and whole words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "text/byte_trie.h"
#include "text/json_part.h"
#include "text/normalizer.h"
#include "text/vocabulary.h"

namespace samebytes::detail {

class AddedTokens {
 public:
  // A part of a text that is a token, or one between tokens (kNone).
  struct Section {
    std::string_view text;
    std::int32_t id;
  };

  AddedTokens() = default;
  // Of "added_tokens". A token of the model keeps its number; others are numbered behind the model's, in their order.
  AddedTokens(const JsonPart& file, const Vocabulary& model, const Normalizers& normalizers);

  // Appends the sections of a text by the tokens that look at it before or after it is normalized.
  void cut(std::string_view text, bool is_normalized, std::vector<Section>& sections) const;
  bool has(bool is_normalized) const { return !(is_normalized ? normalized_ : plain_).empty(); }

  const Vocabulary& vocabulary() const { return vocabulary_; }
  bool is_special(std::int32_t id) const { return special_.contains(id); }
  std::size_t beside_model() const { return beside_model_; }  // tokens that the model does not have

 private:
  struct Flags {
    bool is_single_word, takes_left, takes_right;
  };
  Vocabulary vocabulary_;
  std::unordered_map<std::int32_t, Flags> flags_;
  std::unordered_set<std::int32_t> special_;
  ByteTrie plain_, normalized_;
  std::size_t beside_model_ = 0;
};

}  // namespace samebytes::detail
