#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>

#include "data/json_file.h"
#include "data/lines.h"
#include "data/utf8.h"
#include "samebytes/data/text.h"

namespace samebytes::data {
namespace {

using detail::CharacterClass;

// GPT-2 writes each byte as a printable character: the byte's own character if printable, otherwise the next one from
// U+0100 on.
std::array<char32_t, 256> characters_of_bytes() {
  std::array<char32_t, 256> characters{};
  char32_t next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool is_printable =
        (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
    characters[byte] = is_printable ? static_cast<char32_t>(byte) : next++;
  }
  return characters;
}

// The bytes of a token of vocab.json; none if it has other characters (special tokens may).
std::optional<std::string> bytes_of_token(std::string_view token,
                                          const std::unordered_map<char32_t, unsigned char>& bytes) {
  std::string result;
  for (std::size_t place = 0; place < token.size();) {
    const detail::Character character = detail::character_at(token, place);
    const auto found = bytes.find(character.code);
    if (found == bytes.end()) return std::nullopt;
    result += static_cast<char>(found->second);
    place += character.bytes;
  }
  return result;
}

constexpr std::int32_t kNone = -1;

std::uint64_t key_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}

}  // namespace

struct BpeTokenizer::Tables {
  struct Merge {
    std::int32_t rank = 0;    // smaller ranks merge first
    std::int32_t merged = 0;  // the token that the pair becomes
  };

  std::vector<std::string> bytes;                        // of each token
  std::unordered_map<std::string, std::int32_t> tokens;  // as vocab.json writes them
  std::array<std::int32_t, 256> byte_tokens{};           // kNone: not in the vocabulary
  std::unordered_map<std::uint64_t, Merge> merges;       // by key_of the pair

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
  const std::array<char32_t, 256> characters = characters_of_bytes();
  std::unordered_map<char32_t, unsigned char> byte_of;
  for (unsigned byte = 0; byte < 256; ++byte) byte_of[characters[byte]] = static_cast<unsigned char>(byte);
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
    const std::optional<std::string> meaning = bytes_of_token(token, byte_of);
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
  std::int32_t rank = 0;
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
    if (!merges.emplace(key_of(a, b), Merge{rank++, merged}).second) lines.fail(line, "each pair once");
  }
}

void BpeTokenizer::Tables::encode_word(std::string_view word, std::vector<std::int32_t>& ids) const {
  // A list of tokens linked by index, so that a merge costs O(1).
  struct Part {
    std::int32_t token;
    std::int32_t previous, next;  // kNone at the ends
  };
  std::vector<Part> parts;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const auto byte = static_cast<unsigned char>(word[i]);
    if (byte_tokens[byte] == kNone)
      throw ArgumentError("bpe: the vocabulary has no token for byte " + std::to_string(byte));
    const auto place = static_cast<std::int32_t>(i);
    parts.push_back({byte_tokens[byte], place - 1, i + 1 < word.size() ? place + 1 : kNone});
  }
  // Candidates for merging, by rank, then from the left. Entries whose parts have changed since are skipped.
  struct Candidate {
    std::int32_t rank, place, left, right, merged;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : place > other.place;
    }
  };
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto part = [&](std::int32_t place) -> Part& { return parts[static_cast<std::size_t>(place)]; };
  const auto offer = [&](std::int32_t place) {
    if (place == kNone || part(place).next == kNone) return;
    const std::int32_t left = part(place).token, right = part(part(place).next).token;
    if (const auto found = merges.find(key_of(left, right)); found != merges.end())
      candidates.push({found->second.rank, place, left, right, found->second.merged});
  };
  for (std::int32_t place = 0; place < static_cast<std::int32_t>(parts.size()); ++place) offer(place);
  std::vector<std::int32_t> touched;
  while (!candidates.empty()) {
    // Merges all occurrences of a pair before it considers new pairs, as GPT-2 does.
    const std::int32_t rank = candidates.top().rank;
    touched.clear();
    while (!candidates.empty() && candidates.top().rank == rank) {
      const Candidate candidate = candidates.top();
      candidates.pop();
      Part& left = part(candidate.place);
      if (left.token != candidate.left || left.next == kNone || part(left.next).token != candidate.right) continue;
      Part& right = part(left.next);
      left.token = candidate.merged;
      left.next = right.next;
      right.token = kNone;
      if (left.next != kNone) part(left.next).previous = candidate.place;
      touched.push_back(candidate.place);
    }
    for (const std::int32_t place : touched) {
      if (part(place).token == kNone) continue;
      offer(part(place).previous);
      offer(place);
    }
  }
  for (std::int32_t place = parts.empty() ? kNone : 0; place != kNone; place = part(place).next)
    ids.push_back(part(place).token);
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
  const auto class_at = [&](std::size_t place, std::size_t& bytes) {
    const detail::Character character = detail::character_at(text, place);
    bytes = character.bytes;
    return detail::class_of(character.code);
  };
  // The end of the run of characters of this class that begins at `place`.
  const auto end_of_run = [&](std::size_t place, CharacterClass wanted, std::size_t& last) {
    std::size_t bytes = 0;
    last = place;
    while (place < text.size() && class_at(place, bytes) == wanted) {
      last = place;
      place += bytes;
    }
    return place;
  };
  for (std::size_t place = 0; place < text.size();) {
    const std::string_view rest = text.substr(place);
    std::size_t length = 0, bytes = 0, last = 0;
    for (const std::string_view contraction : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
      if (rest.starts_with(contraction)) length = contraction.size();
    if (length == 0) {
      std::size_t begin = rest.front() == ' ' ? place + 1 : place;
      const bool is_end = begin == text.size();
      const CharacterClass first = is_end ? CharacterClass::blank : class_at(begin, bytes);
      if (first != CharacterClass::blank) {
        length = end_of_run(begin, first, last) - place;
      } else {
        // The last blank before a word belongs to the word.
        const std::size_t end = end_of_run(place, CharacterClass::blank, last);
        length = (end == text.size() || last == place ? end : last) - place;
      }
    }
    words.push_back(text.substr(place, length));
    place += length;
  }
  return words;
}

}  // namespace samebytes::data
