#include "text/added_tokens.h"

#include <algorithm>

#include "text/unicode.h"
#include "text/utf8.h"

namespace samebytes::detail {
namespace {

// Where the last character before `end` begins. Requires: end > 0.
std::size_t last_character(std::string_view text, std::size_t end) {
  std::size_t place = end - 1;
  while (place > 0 && (static_cast<unsigned char>(text[place]) & 0xc0u) == 0x80u) --place;
  return place;
}

bool is_blank_at(std::string_view text, std::size_t place) { return is_blank(character_at(text, place).code); }

}  // namespace

AddedTokens::AddedTokens(const JsonPart& file, const Vocabulary& model, const Normalizers& normalizers) {
  if (file.find("added_tokens") == nullptr) return;
  std::int32_t next = model.most() + 1;
  std::size_t i = 0;
  std::string first, second;
  for (const nlohmann::json& entry : file.array("added_tokens")) {
    const JsonPart token(entry, file.path(), "added_tokens[" + std::to_string(i++) + "]");
    const std::string& content = token.text("content");
    if (content.empty()) continue;
    std::int32_t id = vocabulary_.find(content);
    if (id == Vocabulary::kNone) id = model.find(content);
    if (id == Vocabulary::kNone) {
      id = next++;
      ++beside_model_;
    }
    vocabulary_.add(content, id);
    const bool is_special = token.flag("special", false);
    if (is_special) special_.insert(id);
    flags_[id] = {token.flag("single_word", false), token.flag("lstrip", false), token.flag("rstrip", false)};
    if (token.flag("normalized", !is_special)) {
      const std::string_view normal = normalizers.apply(content, first, second).text;
      if (!normal.empty()) normalized_.add(normal, id);
    } else {
      plain_.add(content, id);
    }
  }
}

void AddedTokens::cut(std::string_view text, bool is_normalized, std::vector<Section>& sections) const {
  const ByteTrie& trie = is_normalized ? normalized_ : plain_;
  std::size_t kept = 0;
  for (std::size_t place = 0; place < text.size();) {
    if (!trie.is_first(text[place])) {
      ++place;
      continue;
    }
    // The longest token that begins here.
    std::int32_t id = ByteTrie::kNone;
    std::size_t begin = place, end = place;
    std::uint32_t node = ByteTrie::kRoot;
    for (std::size_t i = place; i < text.size();) {
      node = trie.child(node, text[i++]);
      if (node == ByteTrie::kNowhere) break;
      if (trie.value(node) == ByteTrie::kNone) continue;
      id = trie.value(node);
      end = i;
    }
    if (id == ByteTrie::kNone) {
      ++place;
      continue;
    }
    place = end;
    const Flags& flags = flags_.at(id);
    if (flags.is_single_word) {
      const bool is_left_free = begin == 0 || !is_word(character_at(text, last_character(text, begin)).code);
      if (!is_left_free || (end < text.size() && is_word(character_at(text, end).code))) continue;
    }
    if (flags.takes_left)
      while (begin > kept && is_blank_at(text, last_character(text, begin))) begin = last_character(text, begin);
    if (flags.takes_right)
      while (end < text.size() && is_blank_at(text, end)) end += bytes_of_first(text[end]);
    begin = std::max(begin, kept);
    place = std::max(place, end);
    if (begin > kept) sections.push_back({text.substr(kept, begin - kept), Vocabulary::kNone});
    sections.push_back({text.substr(begin, end - begin), id});
    kept = end;
  }
  if (kept < text.size()) sections.push_back({text.substr(kept), Vocabulary::kNone});
}

}  // namespace samebytes::detail
