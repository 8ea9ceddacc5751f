// The WordPiece model of tokenizer.json: the longest token that begins a word, then the longest of what is left.
#include <string>

#include "text/byte_trie.h"
#include "text/token_model.h"
#include "text/utf8.h"

namespace samebytes::detail {
namespace {

class WordPiece final : public TokenModel {
 public:
  explicit WordPiece(const JsonPart& part)
      : unknown_name_(part.text("unk_token", "[UNK]")),
        most_characters_(part.integer("max_input_chars_per_word", 0, INT32_MAX, 100)) {
    vocabulary_ = read_vocabulary(part);
    unknown_ = vocabulary_.find(unknown_name_);
    for (std::int32_t id = 0; id <= vocabulary_.most(); ++id)
      if (const auto token = vocabulary_.token(id)) trie_.add(*token, id);
    inside_ = trie_.find(part.text("continuing_subword_prefix", "##"));
  }

  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override {
    const std::size_t begin = ids.size();
    if (is_too_long(word) || !append_pieces(word, ids)) {
      ids.resize(begin);
      if (unknown_ == Vocabulary::kNone)
        throw Error("tokenizer: the token for what is unknown, '" + unknown_name_ + "', is not in the vocabulary");
      ids.push_back(unknown_);
    }
  }

 private:
  bool is_too_long(std::string_view word) const {
    if (static_cast<std::int64_t>(word.size()) <= most_characters_) return false;
    std::int64_t characters = 0;
    for (std::size_t place = 0; place < word.size(); place += bytes_of_first(word[place])) ++characters;
    return characters > most_characters_;
  }
  bool append_pieces(std::string_view word, std::vector<std::int32_t>& ids) const {
    for (std::size_t place = 0; place < word.size();) {
      std::uint32_t node = place == 0 ? ByteTrie::kRoot : inside_;
      std::int32_t best = ByteTrie::kNone;
      std::size_t end = place;
      for (std::size_t i = place; i < word.size() && node != ByteTrie::kNowhere;) {
        node = trie_.child(node, word[i++]);
        if (node != ByteTrie::kNowhere && trie_.value(node) != ByteTrie::kNone) {
          best = trie_.value(node);
          end = i;
        }
      }
      if (best == ByteTrie::kNone) return false;
      ids.push_back(best);
      place = end;
    }
    return true;
  }

  std::string unknown_name_;
  std::int64_t most_characters_;
  std::int32_t unknown_ = Vocabulary::kNone;
  ByteTrie trie_;
  std::uint32_t inside_ = ByteTrie::kNowhere;  // behind the prefix of pieces that do not begin a word
};

}  // namespace

std::unique_ptr<TokenModel> make_word_piece(const JsonPart& part) { return std::make_unique<WordPiece>(part); }

}  // namespace samebytes::detail
