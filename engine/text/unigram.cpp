// The Unigram model of tokenizer.json: of all ways to cut a word into tokens the one with the largest sum of scores (T.
// Kudo, "Subword regularization", 2018).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

#include "text/byte_trie.h"
#include "text/token_model.h"
#include "text/utf8.h"

namespace samebytes::detail {
namespace {

// A score as the Rust library reads it: its digits as a number, which is divided by a power of ten, so that it may miss
// the nearest double by a bit. Sums of scores that are equal on paper are told apart by such bits.
double score_of(double value) {
  constexpr std::size_t kMostText = 40;
  constexpr int kMostPower = 22;  // of ten that a double has exactly
  char text[kMostText];
  const char* const end = std::to_chars(text, text + kMostText, std::fabs(value), std::chars_format::scientific).ptr;
  std::uint64_t digits = 0;
  int behind_point = 0, power = 0;
  const char* place = text;
  for (bool is_behind = false; place < end && *place != 'e'; ++place) {
    if (*place == '.') {
      is_behind = true;
      continue;
    }
    if (*place < '0' || *place > '9') return value;
    digits = digits * 10 + static_cast<std::uint64_t>(*place - '0');
    behind_point += is_behind;
  }
  if (place < end) ++place;
  if (place < end && *place == '+') ++place;
  std::from_chars(place, end, power);
  power -= behind_point;
  if (power > 0 || -power > kMostPower) return value;
  double scale = 1;
  for (int i = 0; i < -power; ++i) scale *= 10;
  return std::copysign(static_cast<double>(digits) / scale, value);
}

class Unigram final : public TokenModel {
 public:
  explicit Unigram(const JsonPart& part) : falls_back_(part.flag("byte_fallback", false)) {
    const nlohmann::json& list = part.array("vocab");
    constexpr double kUnknownPenalty = 10;
    double least = 0;
    std::int32_t id = 0;
    vocabulary_.reserve(list.size());
    for (const nlohmann::json& entry : list) {
      if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
        throw_io("tokenizer", part.path(), -1,
                 "a token and its score as " + part.place_of("vocab") + "[" + std::to_string(id) + "]", to_line(entry));
      const auto& token = entry[0].get_ref<const std::string&>();
      scores_.push_back(score_of(entry[1].get<double>()));
      least = id == 0 ? scores_.back() : std::min(least, scores_.back());
      vocabulary_.add(token, id);
      if (!token.empty()) trie_.add(token, id);
      ++id;
    }
    unknown_score_ = least - kUnknownPenalty;
    if (part.find("unk_id") != nullptr)
      unknown_ = static_cast<std::int32_t>(part.integer("unk_id", 0, static_cast<std::int64_t>(list.size()) - 1));
    fallback_ = fallback_tokens(vocabulary_);
  }

  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override {
    const std::vector<Step> best = best_path(word);
    // From the end; unknown parts side by side are one.
    std::vector<std::pair<std::size_t, std::size_t>> parts;
    bool is_unknown_before = false;
    for (std::size_t end = word.size(); end > 0; end = best[end].begin) {
      const bool is_unknown = unknown_ != Vocabulary::kNone && best[end].id == unknown_;
      if (is_unknown && is_unknown_before)
        parts.back().first = best[end].begin;
      else
        parts.emplace_back(best[end].begin, end);
      is_unknown_before = is_unknown;
    }
    for (auto part = parts.rbegin(); part != parts.rend(); ++part)
      append(word.substr(part->first, part->second - part->first), ids);
  }

 private:
  struct Step {
    double score = 0;
    std::size_t begin = kNowhere;  // of the last token of the best way to here
    std::int32_t id = 0;
  };
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

  std::vector<Step> best_path(std::string_view word) const {
    std::vector<Step> best(word.size() + 1);
    for (std::size_t begin = 0, bytes = 0; begin < word.size(); begin += bytes) {
      bytes = bytes_of_first(word[begin]);
      const double before = best[begin].score;
      const auto offer = [&](std::size_t end, double score, std::int32_t id) {
        if (best[end].begin == kNowhere || before + score > best[end].score) best[end] = {before + score, begin, id};
      };
      bool has_character = false;
      std::uint32_t node = ByteTrie::kRoot;
      for (std::size_t end = begin; end < word.size();) {
        node = trie_.child(node, word[end++]);
        if (node == ByteTrie::kNowhere) break;
        const std::int32_t id = trie_.value(node);
        if (id == ByteTrie::kNone) continue;
        offer(end, scores_[static_cast<std::size_t>(id)], id);
        has_character = has_character || end - begin == bytes;
      }
      if (has_character) continue;
      if (unknown_ == Vocabulary::kNone) throw Error("tokenizer: a character has no token, and unk_id is not set");
      offer(begin + bytes, unknown_score_, unknown_);
    }
    return best;
  }

  void append(std::string_view part, std::vector<std::int32_t>& ids) const {
    if (const std::int32_t id = vocabulary_.find(part); id != Vocabulary::kNone) {
      ids.push_back(id);
      return;
    }
    const auto fallback = [&](char c) { return fallback_[static_cast<unsigned char>(c)]; };
    if (falls_back_ && std::all_of(part.begin(), part.end(), [&](char c) { return fallback(c) != Vocabulary::kNone; }))
      for (const char c : part) ids.push_back(fallback(c));
    else
      ids.push_back(unknown_);
  }

  bool falls_back_;
  std::int32_t unknown_ = Vocabulary::kNone;
  double unknown_score_ = 0;
  std::vector<double> scores_;
  std::vector<std::int32_t> fallback_;
  ByteTrie trie_;
};

}  // namespace

std::unique_ptr<TokenModel> make_unigram(const JsonPart& part) { return std::make_unique<Unigram>(part); }

}  // namespace samebytes::detail
