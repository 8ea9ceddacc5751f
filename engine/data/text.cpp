#include "samebytes/data/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/io_error.h"
#include "data/json_file.h"
#include "samebytes/io/files.h"
#include "text/utf8.h"

namespace samebytes::data {
namespace {

constexpr const char* kCharacters = "characters";

std::string shown(char32_t code) {
  std::string text(1, '\'');
  detail::append_utf8(text, code);
  char number[16];
  std::snprintf(number, sizeof number, " (U+%04X)", static_cast<unsigned>(code));
  return text + "'" + number;
}

std::vector<std::pair<char32_t, std::int32_t>> by_character(const std::vector<char32_t>& characters) {
  std::vector<std::pair<char32_t, std::int32_t>> ids;
  for (std::size_t i = 0; i < characters.size(); ++i) ids.emplace_back(characters[i], static_cast<std::int32_t>(i));
  std::sort(ids.begin(), ids.end());
  return ids;
}

// Calls act(code, place) for each character; throws ArgumentError if the text is not UTF-8.
template <class Act>
void for_each_character(const char* what, std::string_view text, Act act) {
  for (std::size_t place = 0; place < text.size();) {
    const detail::Character character = detail::character_at(text, place);
    if (character.code == detail::kNoCharacter)
      throw ArgumentError(std::string(what) + ": wants text in UTF-8, byte " + std::to_string(place) + " is " +
                          std::to_string(static_cast<unsigned char>(text[place])));
    act(character.code, place);
    place += character.bytes;
  }
}

// Windows over tokens first .. first + count - 1 of a text that several sets share.
class TokenWindows final : public Dataset {
 public:
  using Ids = std::shared_ptr<const std::vector<std::int32_t>>;
  TokenWindows(const char* part, Ids ids, std::int64_t first, std::int64_t count, std::int64_t context,
               std::int64_t stride)
      : ids_(std::move(ids)), first_(first), context_(context), stride_(stride > 0 ? stride : context) {
    if (context < 1) throw ArgumentError("token_windows: context must be 1 or more, got " + std::to_string(context));
    if (stride < 0) throw ArgumentError("token_windows: stride must be 0 or more, got " + std::to_string(stride));
    if (count <= context)
      throw ArgumentError("token_windows: a context of " + std::to_string(context) + " wants at least " +
                          std::to_string(context + 1) + " tokens" + part + ", got " + std::to_string(count));
    size_ = (count - 1 - context) / stride_ + 1;
    fields_ = {{"ids", Shape{context}, i32}, {"target", Shape{context}, i32}};
  }

  std::int64_t size() const override { return size_; }
  const std::vector<FieldSpec>& fields() const override { return fields_; }
  bool read(std::int64_t index, std::span<const Field> dst) const override {
    const auto from = ids_->begin() + first_ + index * stride_;
    std::copy_n(from, context_, dst[0].as<std::int32_t>().begin());
    std::copy_n(from + 1, context_, dst[1].as<std::int32_t>().begin());
    return true;
  }

 private:
  Ids ids_;
  std::int64_t first_, context_, stride_, size_ = 0;
  std::vector<FieldSpec> fields_;
};

}  // namespace

std::string read_text(const std::string& path) {
  const std::vector<std::byte> file = io::read_file(path);
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

CharTokenizer CharTokenizer::from_text(std::string_view text) {
  CharTokenizer tokenizer;
  std::vector<char32_t>& characters = tokenizer.characters_;
  constexpr std::size_t kTidyAt = 1 << 16;
  const auto tidy = [&] {
    std::sort(characters.begin(), characters.end());
    characters.erase(std::unique(characters.begin(), characters.end()), characters.end());
  };
  std::size_t tidy_at = kTidyAt;
  for_each_character("char_tokenizer", text, [&](char32_t code, std::size_t) {
    characters.push_back(code);
    if (characters.size() < tidy_at) return;
    tidy();
    tidy_at = 2 * characters.size() + kTidyAt;
  });
  tidy();
  tokenizer.ids_ = by_character(characters);
  return tokenizer;
}

CharTokenizer CharTokenizer::load(const std::string& path) {
  const auto json = detail::read_json("char_tokenizer", path);
  if (!json.is_object() || !json.contains(kCharacters) || !json[kCharacters].is_array())
    detail::throw_io("char_tokenizer", path, -1, "an object with an array \"characters\"", json.type_name());
  CharTokenizer tokenizer;
  for (const auto& entry : json[kCharacters]) {
    const std::string text = entry.is_string() ? entry.get<std::string>() : std::string();
    const detail::Character character = text.empty() ? detail::Character{} : detail::character_at(text, 0);
    if (character.code == detail::kNoCharacter || character.bytes != text.size())
      detail::throw_io("char_tokenizer", path, -1,
                       "a string of one character as token " + std::to_string(tokenizer.characters_.size()),
                       entry.dump());
    tokenizer.characters_.push_back(character.code);
  }
  tokenizer.ids_ = by_character(tokenizer.characters_);
  for (std::size_t i = 1; i < tokenizer.ids_.size(); ++i)
    if (tokenizer.ids_[i].first == tokenizer.ids_[i - 1].first)
      detail::throw_io("char_tokenizer", path, -1, "each character once", shown(tokenizer.ids_[i].first) + " twice");
  return tokenizer;
}

void CharTokenizer::save(const std::string& path) const {
  nlohmann::json list = nlohmann::json::array();
  for (const char32_t character : characters_) {
    std::string text;
    detail::append_utf8(text, character);
    list.push_back(text);
  }
  io::write_file(path, nlohmann::json{{kCharacters, std::move(list)}}.dump() + "\n");
}

std::vector<std::int32_t> CharTokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  ids.reserve(text.size());
  for_each_character("char_tokenizer", text, [&](char32_t code, std::size_t place) {
    const auto found = std::lower_bound(ids_.begin(), ids_.end(), std::pair(code, std::int32_t{0}));
    if (found == ids_.end() || found->first != code)
      throw ArgumentError("char_tokenizer: " + shown(code) + " at byte " + std::to_string(place) +
                          " is not among the " + std::to_string(size()) + " characters of the vocabulary");
    ids.push_back(found->second);
  });
  return ids;
}

std::string CharTokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= size())
      throw ArgumentError("char_tokenizer: a token must be 0 to " + std::to_string(size() - 1) + ", got " +
                          std::to_string(id));
    detail::append_utf8(text, characters_[static_cast<std::size_t>(id)]);
  }
  return text;
}

DatasetPtr token_windows(std::vector<std::int32_t> ids, std::int64_t context, std::int64_t stride) {
  const auto count = static_cast<std::int64_t>(ids.size());
  return std::make_shared<TokenWindows>("", std::make_shared<const std::vector<std::int32_t>>(std::move(ids)), 0, count,
                                        context, stride);
}

Split token_split(std::vector<std::int32_t> ids, std::int64_t context, const TokenSplitOptions& options) {
  if (!(options.validation > 0 && options.validation < 1))
    throw ArgumentError("token_split: validation must be between 0 and 1, got " + std::to_string(options.validation));
  const auto count = static_cast<std::int64_t>(ids.size());
  const auto train = static_cast<std::int64_t>(std::floor(static_cast<double>(count) * (1 - options.validation)));
  const auto shared = std::make_shared<const std::vector<std::int32_t>>(std::move(ids));
  return {std::make_shared<TokenWindows>(" for training", shared, 0, train, context, options.stride),
          std::make_shared<TokenWindows>(" for validation", shared, train, count - train, context, 0)};
}

}  // namespace samebytes::data
