#include "text/token_model.h"

#include <cstdio>
#include <string>

namespace samebytes::detail {
namespace {

class WordLevel final : public TokenModel {
 public:
  explicit WordLevel(const JsonPart& part) {
    vocabulary_ = read_vocabulary(part);
    unknown_ = vocabulary_.find(part.text("unk_token", "<unk>"));
  }
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override {
    std::int32_t id = vocabulary_.find(word);
    if (id == Vocabulary::kNone) id = unknown_;
    if (id == Vocabulary::kNone)
      throw Error("tokenizer: '" + std::string(word) + "' has no token, nor has what is unknown");
    ids.push_back(id);
  }

 private:
  std::int32_t unknown_;
};

}  // namespace

Vocabulary read_vocabulary(const JsonPart& part) {
  const JsonPart words = part.part("vocab");
  // Numbers have gaps in some files, but no table is made for one that only a number claims.
  const std::uint64_t most = 4 * words.json().size() + (1 << 16);
  Vocabulary vocabulary;
  vocabulary.reserve(words.json().size());
  for (const auto& [token, number] : words.json().items()) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > most)
      throw_io("tokenizer", part.path(), -1,
               "a number from 0 to " + std::to_string(most) + " for token '" + token + "' of " + words.place(),
               to_line(number));
    vocabulary.add(token, number.get<std::int32_t>());
  }
  return vocabulary;
}

std::vector<std::int32_t> fallback_tokens(const Vocabulary& vocabulary) {
  std::vector<std::int32_t> ids;
  for (unsigned byte = 0; byte < 256; ++byte) {
    char token[8];
    std::snprintf(token, sizeof token, "<0x%02X>", byte);
    ids.push_back(vocabulary.find(token));
  }
  return ids;
}

std::int32_t named_token(const JsonPart& part, const char* key, const Vocabulary& vocabulary) {
  if (part.find(key) == nullptr) return Vocabulary::kNone;
  const std::int32_t id = vocabulary.find(part.text(key));
  if (id == Vocabulary::kNone) part.fail(key, "a token of the vocabulary", part.find(key));
  return id;
}

std::unique_ptr<TokenModel> make_token_model(const JsonPart& part, bool is_byte_level) {
  // Files of the first versions do not say what they are.
  const nlohmann::json* vocabulary = part.find("vocab");
  std::string type;
  if (part.find("type") != nullptr)
    type = part.type();
  else if (part.find("merges") != nullptr)
    type = "BPE";
  else if (vocabulary != nullptr && vocabulary->is_array())
    type = "Unigram";
  else
    type = part.find("continuing_subword_prefix") != nullptr ? "WordPiece" : "WordLevel";
  if (type == "BPE") return make_bpe(part, is_byte_level);
  if (type == "WordPiece") return make_word_piece(part);
  if (type == "WordLevel") return std::make_unique<WordLevel>(part);
  if (type == "Unigram") return make_unigram(part);
  part.fail_type("BPE, WordPiece, WordLevel or Unigram");
}

}  // namespace samebytes::detail
