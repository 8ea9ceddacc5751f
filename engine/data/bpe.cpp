#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "data/json_file.h"
#include "data/lines.h"
#include "samebytes/data/text.h"
#include "text/bpe_merges.h"
#include "text/byte_characters.h"
#include "text/word_patterns.h"

namespace samebytes::data {
namespace {

constexpr std::int32_t kNone = -1;

}  // namespace

struct BpeTokenizer::Tables {
  std::vector<std::string> bytes;                        // of each token
  std::unordered_map<std::string, std::int32_t> tokens;  // as vocab.json writes them
  std::array<std::int32_t, 256> byte_tokens{};           // kNone: not in the vocabulary
  detail::BpeMerges merges;

  void read_vocabulary(const std::string& path);
  void read_merges(const std::string& path);
  // Appends the tokens of one word.
  void encode_word(std::string_view word, std::vector<std::int32_t>& ids) const;
};

void BpeTokenizer::Tables::read_vocabulary(const std::string& path) {
  const nlohmann::json json = detail::read_json("bpe", path);
  if (!json.is_object() || json.empty())
    detail::throw_io("bpe", path, -1, "an object of tokens and their numbers",
                     json.empty() ? "nothing in it" : json.type_name());
  bytes.resize(json.size());
  std::vector<bool> seen(json.size());
  byte_tokens.fill(kNone);
  for (const auto& [token, number] : json.items()) {
    if (!number.is_number_integer() || number.get<std::int64_t>() < 0 ||
        number.get<std::int64_t>() >= static_cast<std::int64_t>(json.size()))
      detail::throw_io("bpe", path, -1,
                       "a number from 0 to " + std::to_string(json.size() - 1) + " for token '" + token + "'",
                       number.dump());
    const auto id = number.get<std::size_t>();
    if (seen[id])
      detail::throw_io("bpe", path, -1, "each number once", std::to_string(id) + " again for token '" + token + "'");
    seen[id] = true;
    const std::optional<std::string> meaning = detail::bytes_of_token(token);
    bytes[id] = meaning.value_or(token);
    tokens.emplace(token, static_cast<std::int32_t>(id));
    if (meaning && meaning->size() == 1)
      byte_tokens[static_cast<unsigned char>(meaning->front())] = static_cast<std::int32_t>(id);
  }
}

void BpeTokenizer::Tables::read_merges(const std::string& path) {
  const std::vector<std::byte> file = io::read_file(path);
  detail::LineReader lines("bpe", path, {reinterpret_cast<const char*>(file.data()), file.size()});
  std::string_view line;
  std::uint32_t rank = 0;
  while (lines.next(line)) {
    if (line.empty() || (lines.number() == 1 && line.starts_with("#version"))) continue;
    std::string_view left, right = line;
    if (!detail::cut(right, ' ', left) || left.empty() || right.empty() || right.find(' ') != std::string_view::npos)
      lines.fail(line, "two tokens with a blank between");
    const auto find = [&](const std::string& token, std::string_view at) {
      const auto found = tokens.find(token);
      if (found == tokens.end()) lines.fail_with(at, "tokens of the vocabulary", "'" + token + "'");
      return found->second;
    };
    const std::int32_t a = find(std::string(left), left), b = find(std::string(right), right);
    const std::int32_t merged = find(std::string(left) + std::string(right), left);
    if (!merges.add(a, b, rank++, merged)) lines.fail(line, "each pair once");
  }
}

void BpeTokenizer::Tables::encode_word(std::string_view word, std::vector<std::int32_t>& ids) const {
  const std::size_t begin = ids.size();
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte_tokens[byte] == kNone)
      throw ArgumentError("bpe: the vocabulary has no token for byte " + std::to_string(byte));
    ids.push_back(byte_tokens[byte]);
  }
  merges.apply(ids, begin);
}

BpeTokenizer BpeTokenizer::load(const std::string& vocab_path, const std::string& merges_path) {
  auto tables = std::make_shared<Tables>();
  tables->read_vocabulary(vocab_path);
  tables->read_merges(merges_path);
  BpeTokenizer tokenizer;
  tokenizer.tables_ = std::move(tables);
  return tokenizer;
}

std::int32_t BpeTokenizer::size() const { return static_cast<std::int32_t>(tables_->bytes.size()); }

std::vector<std::int32_t> BpeTokenizer::encode(std::string_view text) const {
  struct TokenRange {
    std::size_t begin, count;
  };
  std::unordered_map<std::string_view, TokenRange> known;  // words of this text and the ranges of their tokens in `ids`
  std::vector<std::int32_t> ids;
  for (const std::string_view word : split(text)) {
    if (const auto found = known.find(word); found != known.end()) {
      for (std::size_t i = 0; i < found->second.count; ++i) ids.push_back(ids[found->second.begin + i]);
      continue;
    }
    const std::size_t begin = ids.size();
    tables_->encode_word(word, ids);
    known.emplace(word, TokenRange{begin, ids.size() - begin});
  }
  return ids;
}

std::string BpeTokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= size())
      throw ArgumentError("bpe: a token must be 0 to " + std::to_string(size() - 1) + ", got " + std::to_string(id));
    text += tables_->bytes[static_cast<std::size_t>(id)];
  }
  return text;
}

std::optional<std::int32_t> BpeTokenizer::id(std::string_view token) const {
  const auto found = tables_->tokens.find(std::string(token));
  if (found == tables_->tokens.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string_view> BpeTokenizer::split(std::string_view text) {
  std::vector<std::string_view> words;
  detail::split_words(detail::WordPattern::gpt2, text, words);
  return words;
}

}  // namespace samebytes::data
