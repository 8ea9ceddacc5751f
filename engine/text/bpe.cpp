// The BPE model of tokenizer.json: characters or bytes, paired by rank (R. Sennrich et al., "Neural machine translation
// of rare words with subword units", 2016).
#include <algorithm>
#include <array>
#include <string>

#include "text/bpe_merges.h"
#include "text/byte_characters.h"
#include "text/token_model.h"
#include "text/utf8.h"

namespace samebytes::detail {
namespace {

constexpr std::string_view kMetaspaceMark = "\u2581";

class Bpe final : public TokenModel {
 public:
  Bpe(const JsonPart& part, bool is_byte_level);
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override;
  bool takes_bytes() const override { return takes_bytes_; }
  bool cuts_at_metaspace() const override { return cuts_at_metaspace_; }

 private:
  void read_merges(const JsonPart& part);
  void append_bytes(std::string_view word, std::vector<std::int32_t>& ids) const;
  void append_characters(std::string_view word, std::vector<std::int32_t>& ids) const;

  BpeMerges merges_;
  std::string prefix_, suffix_;  // of all characters but the first, of the last one
  std::int32_t unknown_ = Vocabulary::kNone;
  std::string unknown_name_;  // of a token that the vocabulary lacks
  bool is_unknown_fused_ = false, falls_back_ = false, takes_whole_words_ = false, takes_bytes_ = false,
       cuts_at_metaspace_ = true;
  std::vector<std::int32_t> fallback_;           // the tokens <0x00> to <0xFF>
  std::array<std::int32_t, 256> byte_tokens_{};  // of GPT-2's characters, where takes_bytes_
  Vocabulary whole_words_;                       // the tokens as bytes, where takes_bytes_ and takes_whole_words_
};

Bpe::Bpe(const JsonPart& part, bool is_byte_level)
    : prefix_(part.text("continuing_subword_prefix", "")),
      suffix_(part.text("end_of_word_suffix", "")),
      is_unknown_fused_(part.flag("fuse_unk", false)),
      falls_back_(part.flag("byte_fallback", false)),
      takes_whole_words_(part.flag("ignore_merges", false)) {
  const nlohmann::json* dropout = part.find("dropout");
  if (dropout != nullptr && !(dropout->is_number() && dropout->get<double>() == 0))
    part.fail("dropout", "null (other numbers give different tokens at each call)", dropout);
  vocabulary_ = read_vocabulary(part);
  if (part.find("unk_token") != nullptr) {
    unknown_name_ = part.text("unk_token");
    unknown_ = vocabulary_.find(unknown_name_);
  }
  fallback_ = fallback_tokens(vocabulary_);
  read_merges(part);
  cuts_at_metaspace_ = cuts_at_metaspace_ && !takes_whole_words_ && prefix_.empty() && suffix_.empty() &&
                       vocabulary_.find(kMetaspaceMark) != Vocabulary::kNone;
  takes_bytes_ = is_byte_level && !falls_back_ && prefix_.empty() && suffix_.empty();
  for (std::size_t byte = 0; byte < byte_tokens_.size(); ++byte) {
    byte_tokens_[byte] = vocabulary_.find(byte_characters()[byte]);
    // What is unknown is a matter of characters.
    takes_bytes_ = takes_bytes_ && byte_tokens_[byte] != Vocabulary::kNone;
  }
  if (takes_bytes_ && takes_whole_words_) {
    whole_words_.reserve(vocabulary_.size());
    for (std::int32_t id = 0; id <= vocabulary_.most(); ++id)
      if (const auto token = vocabulary_.token(id))
        if (const auto bytes = bytes_of_token(*token)) whole_words_.add(*bytes, id);
  }
}

void Bpe::read_merges(const JsonPart& part) {
  const nlohmann::json& list = part.array("merges");
  merges_.reserve(list.size());
  std::string whole;
  std::uint32_t rank = 0;
  for (const nlohmann::json& pair : list) {
    const auto fail = [&](const std::string& expected) {
      throw_io("tokenizer", part.path(), -1,
               expected + " as " + part.place_of("merges") + "[" + std::to_string(rank) + "]", to_line(pair));
    };
    std::string_view left, right;
    if (pair.is_array() && pair.size() == 2 && pair[0].is_string() && pair[1].is_string()) {
      left = pair[0].get_ref<const std::string&>();
      right = pair[1].get_ref<const std::string&>();
    } else if (pair.is_string()) {
      const std::string_view text = pair.get_ref<const std::string&>();
      const std::size_t blank = text.find(' ');
      if (blank == std::string_view::npos || text.find(' ', blank + 1) != std::string_view::npos)
        fail("two tokens with a blank between");
      left = text.substr(0, blank);
      right = text.substr(blank + 1);
    } else {
      fail("a pair of tokens");
    }
    if (right.size() < prefix_.size()) fail("a second token with the prefix '" + prefix_ + "'");
    (whole = left) += right.substr(prefix_.size());
    const std::int32_t a = vocabulary_.find(left), b = vocabulary_.find(right), merged = vocabulary_.find(whole);
    if (a == Vocabulary::kNone || b == Vocabulary::kNone || merged == Vocabulary::kNone)
      fail("tokens of the vocabulary that give another one");
    merges_.add(a, b, rank++, merged);
    if (right.starts_with(kMetaspaceMark) && !left.ends_with(kMetaspaceMark)) cuts_at_metaspace_ = false;
  }
}

void Bpe::append_bytes(std::string_view word, std::vector<std::int32_t>& ids) const {
  for (const char c : word) ids.push_back(byte_tokens_[static_cast<unsigned char>(c)]);
}

void Bpe::append_characters(std::string_view word, std::vector<std::int32_t>& ids) const {
  // An unknown character waits for the next known one, so that several may become one token.
  bool is_waiting = false;
  const auto flush = [&] {
    if (is_waiting) ids.push_back(unknown_);
    is_waiting = false;
  };
  std::string built;
  std::size_t bytes = 0;
  for (std::size_t place = 0; place < word.size(); place += bytes) {
    bytes = bytes_of_first(word[place]);
    std::string_view character = word.substr(place, bytes);
    const bool is_prefixed = place > 0 && !prefix_.empty(), is_last = place + bytes >= word.size();
    if (is_prefixed || (is_last && !suffix_.empty())) {
      (built = is_prefixed ? prefix_ : std::string()) += character;
      if (is_last) built += suffix_;
      character = built;
    }
    if (const std::int32_t id = vocabulary_.find(character); id != Vocabulary::kNone) {
      flush();
      ids.push_back(id);
      continue;
    }
    const auto fallback = [&](char c) { return fallback_[static_cast<unsigned char>(c)]; };
    if (falls_back_ &&
        std::all_of(character.begin(), character.end(), [&](char c) { return fallback(c) != Vocabulary::kNone; })) {
      for (const char c : character) ids.push_back(fallback(c));
      continue;
    }
    if (unknown_ == Vocabulary::kNone) {
      if (!unknown_name_.empty())
        throw Error("tokenizer: the token for what is unknown, '" + unknown_name_ + "', is not in the vocabulary");
      continue;
    }
    if (!is_unknown_fused_) flush();
    is_waiting = true;
  }
  flush();
}

void Bpe::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  if (takes_whole_words_) {
    const std::int32_t id = (takes_bytes_ ? whole_words_ : vocabulary_).find(word);
    if (id != Vocabulary::kNone) {
      ids.push_back(id);
      return;
    }
  }
  const std::size_t begin = ids.size();
  if (takes_bytes_)
    append_bytes(word, ids);
  else
    append_characters(word, ids);
  merges_.apply(ids, begin);
}

}  // namespace

std::unique_ptr<TokenModel> make_bpe(const JsonPart& part, bool is_byte_level) {
  return std::make_unique<Bpe>(part, is_byte_level);
}

}  // namespace samebytes::detail
