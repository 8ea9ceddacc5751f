#include "samebytes/text/tokenizer.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "core/mutex.h"
#include "samebytes/error.h"
#include "samebytes/io/files.h"
#include "samebytes/io/gguf.h"
#include "text/added_tokens.h"
#include "text/decoder.h"
#include "text/gguf_tokenizer.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/template.h"
#include "text/token_model.h"
#include "text/utf8.h"
#include "text/word_cache.h"

namespace samebytes::text {
namespace {

using detail::JsonPart;
using detail::Vocabulary;
using Ids = std::vector<std::int32_t>;

constexpr std::int64_t kMostLength = std::int64_t{1} << 24;
constexpr std::string_view kMetaspace = "\u2581";

Side side_of(const JsonPart& part) {
  const std::string text = part.text("direction", "Right");
  if (text != "Left" && text != "Right") part.fail("direction", "Left or Right", part.find("direction"));
  return text == "Left" ? Side::left : Side::right;
}

Truncation read_truncation(const JsonPart& part) {
  const std::string strategy = part.text("strategy", "LongestFirst");
  Truncation truncation{.max_length = part.integer("max_length", 0, kMostLength), .side = side_of(part)};
  if (strategy == "OnlyFirst")
    truncation.strategy = TruncationStrategy::only_first;
  else if (strategy == "OnlySecond")
    truncation.strategy = TruncationStrategy::only_second;
  else if (strategy != "LongestFirst")
    part.fail("strategy", "LongestFirst, OnlyFirst or OnlySecond", part.find("strategy"));
  return truncation;
}

Padding read_padding(const JsonPart& part) {
  Padding padding{.multiple_of = part.integer("pad_to_multiple_of", 0, kMostLength, 0),
                  .side = side_of(part),
                  .id = static_cast<std::int32_t>(part.integer("pad_id", 0, INT32_MAX, 0)),
                  .type = static_cast<std::int32_t>(part.integer("pad_type_id", 0, INT32_MAX, 0))};
  const nlohmann::json* strategy = part.find("strategy");
  if (strategy == nullptr || *strategy == "BatchLongest") return padding;
  if (!strategy->is_object() || !strategy->contains("Fixed")) part.fail("strategy", "BatchLongest or Fixed", strategy);
  padding.length = part.part("strategy").integer("Fixed", 0, kMostLength);
  return padding;
}

void cut(Ids& ids, std::size_t length, Side side) {
  if (ids.size() <= length) return;
  if (side == Side::right)
    ids.resize(length);
  else
    ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(length));
}

// Leaves at most `most` tokens of both texts together.
void truncate(const Truncation& truncation, std::size_t most, std::array<Ids, 2>& texts, bool is_pair) {
  const std::size_t total = texts[0].size() + texts[1].size();
  if (total <= most) return;
  const std::size_t removed = total - most;
  if (most == 0) {
    texts[0].clear();
    texts[1].clear();
    return;
  }
  if (truncation.strategy == TruncationStrategy::longest_first) {
    if (!is_pair) return cut(texts[0], most, truncation.side);
    std::size_t shorter = std::min(texts[0].size(), texts[1].size()), longer = 0;
    const bool is_second_shorter = texts[1].size() < texts[0].size();
    longer = shorter > most ? shorter : std::max(shorter, most - shorter);
    if (shorter + longer > most) {
      shorter = most / 2;
      longer = shorter + most % 2;
    }
    cut(texts[0], is_second_shorter ? longer : shorter, truncation.side);
    cut(texts[1], is_second_shorter ? shorter : longer, truncation.side);
    return;
  }
  const std::size_t chosen = truncation.strategy == TruncationStrategy::only_first ? 0 : 1;
  if (chosen == 1 && !is_pair) throw Error("tokenizer: a truncation of the second text wants two texts");
  if (texts[chosen].size() <= removed)
    throw Error("tokenizer: a truncation to " + std::to_string(most) +
                " tokens leaves nothing of the text that it cuts");
  cut(texts[chosen], texts[chosen].size() - removed, truncation.side);
}

void pad(const Padding& padding, std::span<Encoding> encodings) {
  std::size_t length = static_cast<std::size_t>(padding.length);
  if (length == 0)
    for (const Encoding& encoding : encodings) length = std::max(length, encoding.ids.size());
  if (const auto multiple = static_cast<std::size_t>(padding.multiple_of); multiple > 0)
    length = (length + multiple - 1) / multiple * multiple;
  for (Encoding& encoding : encodings) {
    if (encoding.ids.size() >= length) continue;
    const std::size_t missing = length - encoding.ids.size();
    const auto add = [&](std::vector<std::int32_t>& list, std::int32_t value) {
      list.insert(padding.side == Side::right ? list.end() : list.begin(), missing, value);
    };
    add(encoding.ids, padding.id);
    add(encoding.types, padding.type);
    add(encoding.mask, 0);
  }
}

}  // namespace

struct Tokenizer::State {
  // What encoding needs beside the tables; one for each call that runs.
  struct Workspace {
    std::string whole, normal, other;
    std::vector<detail::AddedTokens::Section> sections, parts;
    detail::Words words;
    detail::WordCache cache;
  };

  explicit State(const JsonPart& file) : path(file.path()) {
    if (file.find("normalizer") != nullptr) normalizers = detail::Normalizers(file.part("normalizer"));
    if (file.find("pre_tokenizer") != nullptr) pre_tokenizers = detail::PreTokenizers(file.part("pre_tokenizer"));
    model = detail::make_token_model(file.part("model"), pre_tokenizers.is_byte_level());
    if (model->takes_bytes()) pre_tokenizers.leave_bytes();
    added = detail::AddedTokens(file, model->vocabulary(), normalizers);
    if (file.find("post_processor") != nullptr) pattern = detail::Template(file.part("post_processor"));
    if (file.find("decoder") != nullptr) decoders = detail::Decoders(file.part("decoder"));
  }

  void encode(std::string_view text, Workspace& space, Ids& ids) const;
  void encode_normalized(std::string_view text, bool is_first, Workspace& space, Ids& ids) const;
  void encode_word(std::string_view word, Workspace& space, Ids& ids) const;
  Encoding encode(std::string_view text, const std::string_view* second, bool has_special,
                  const std::optional<Truncation>& truncation, Workspace& space) const;
  std::size_t special_tokens(bool is_pair) const {
    std::size_t count = 0;
    for (const detail::TemplatePart& part : pattern.parts(is_pair)) count += part.ids.size();
    return count;
  }
  std::optional<std::string_view> token(std::int32_t id) const {
    const auto found = added.vocabulary().token(id);
    return found ? found : model->vocabulary().token(id);
  }

  // A workspace that no other call uses.
  std::unique_ptr<Workspace> take() const SAMEBYTES_EXCLUDES(mutex) {
    {
      const detail::MutexLock lock(mutex);
      if (!idle.empty()) {
        std::unique_ptr<Workspace> space = std::move(idle.back());
        idle.pop_back();
        return space;
      }
    }
    return std::make_unique<Workspace>();
  }
  void give(std::unique_ptr<Workspace> space) const SAMEBYTES_EXCLUDES(mutex) {
    const detail::MutexLock lock(mutex);
    idle.push_back(std::move(space));
  }

  std::string path;
  detail::Normalizers normalizers;
  detail::PreTokenizers pre_tokenizers;
  std::unique_ptr<detail::TokenModel> model;
  detail::AddedTokens added;
  detail::Template pattern;
  detail::Decoders decoders;
  mutable detail::Mutex mutex;
  mutable std::vector<std::unique_ptr<Workspace>> idle SAMEBYTES_GUARDED_BY(mutex);
};

void Tokenizer::State::encode_word(std::string_view word, Workspace& space, Ids& ids) const {
  if (word.size() > detail::WordCache::kLongest) return model->encode(word, ids);
  if (space.cache.get(word, ids)) return;
  const std::size_t begin = ids.size();
  model->encode(word, ids);
  space.cache.put(word, std::span<const std::int32_t>(ids).subspan(begin));
}

void Tokenizer::State::encode_normalized(std::string_view text, bool is_first, Workspace& space, Ids& ids) const {
  space.words.list.assign(1, {text, is_first});
  space.words.texts.clear();
  pre_tokenizers.apply(space.words);
  const bool cuts = model->cuts_at_metaspace();
  for (const detail::Word& word : space.words.list) {
    if (word.text.empty()) continue;
    if (!cuts) {
      encode_word(word.text, space, ids);
      continue;
    }
    // Before each run of metaspaces that something else precedes.
    for (std::size_t begin = 0, place = 0; begin < word.text.size(); begin = place) {
      while (word.text.substr(place).starts_with(kMetaspace)) place += kMetaspace.size();
      place = std::min(word.text.find(kMetaspace, place), word.text.size());
      encode_word(word.text.substr(begin, place - begin), space, ids);
    }
  }
}

void Tokenizer::State::encode(std::string_view given, Workspace& space, Ids& ids) const {
  const std::string_view text = detail::repaired_utf8(given, space.whole);
  space.sections.clear();
  added.cut(text, false, space.sections);
  // Bytes are about what texts have three to a token of.
  ids.reserve(ids.size() + text.size() / 3);
  for (const auto& section : space.sections) {
    if (section.id != Vocabulary::kNone) {
      ids.push_back(section.id);
      continue;
    }
    const auto [normal, has_front] = normalizers.apply(section.text, space.normal, space.other);
    const bool is_first = section.text.data() == text.data() && has_front;
    if (!added.has(true)) {
      encode_normalized(normal, is_first, space, ids);
      continue;
    }
    space.parts.clear();
    added.cut(normal, true, space.parts);
    for (const auto& part : space.parts) {
      if (part.id != Vocabulary::kNone)
        ids.push_back(part.id);
      else
        encode_normalized(part.text, is_first && part.text.data() == normal.data(), space, ids);
    }
  }
}

Encoding Tokenizer::State::encode(std::string_view text, const std::string_view* second, bool has_special,
                                  const std::optional<Truncation>& truncation, Workspace& space) const {
  const bool is_pair = second != nullptr;
  std::array<Ids, 2> texts;
  encode(text, space, texts[0]);
  if (is_pair) encode(*second, space, texts[1]);
  if (truncation) {
    const auto special = static_cast<std::int64_t>(has_special ? special_tokens(is_pair) : 0);
    truncate(*truncation, static_cast<std::size_t>(std::max<std::int64_t>(truncation->max_length - special, 0)), texts,
             is_pair);
  }
  Encoding encoding;
  const auto append = [&](Ids& ids, std::int32_t type) {
    encoding.types.insert(encoding.types.end(), ids.size(), type);
    if (encoding.ids.empty())
      encoding.ids = std::move(ids);
    else
      encoding.ids.insert(encoding.ids.end(), ids.begin(), ids.end());
  };
  for (const detail::TemplatePart& part : pattern.parts(is_pair)) {
    if (part.text < 0) {
      Ids ids = part.ids;
      if (has_special) append(ids, part.type);
      continue;
    }
    const bool is_plain = !has_special && pattern.has_plain_types();
    Ids ids = texts[static_cast<std::size_t>(part.text)];
    append(ids, is_plain ? pattern.plain_type(part.text) : part.type);
  }
  encoding.mask.assign(encoding.ids.size(), 1);
  return encoding;
}

void Tokenizer::read(const JsonPart& file) {
  state_ = std::make_shared<const State>(file);
  if (file.find("truncation") != nullptr) truncation_ = read_truncation(file.part("truncation"));
  if (file.find("padding") != nullptr) padding_ = read_padding(file.part("padding"));
}

Tokenizer Tokenizer::parse(const std::string& path, std::string_view json) {
  return detail::reading_json("tokenizer", path, [&] {
    const nlohmann::json parsed = detail::parse_json("tokenizer", path, json);
    Tokenizer tokenizer;
    tokenizer.read(JsonPart(parsed, path, ""));
    return tokenizer;
  });
}

Tokenizer Tokenizer::load(const std::string& path) {
  if (io::is_gguf(path))
    return detail::reading_json("tokenizer", path, [&] {
      const nlohmann::json json = detail::read_gguf_tokenizer(path).tokenizer;
      Tokenizer tokenizer;
      tokenizer.read(JsonPart(json, path, ""));
      return tokenizer;
    });
  const std::string file = std::filesystem::is_directory(path) ? path + "/tokenizer.json" : path;
  const std::vector<std::byte> bytes = io::read_file(file);
  return parse(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::int64_t Tokenizer::size() const {
  return static_cast<std::int64_t>(state_->model->vocabulary().size() + state_->added.beside_model());
}

std::int64_t Tokenizer::largest_id() const {
  return std::max(state_->model->vocabulary().most(), state_->added.vocabulary().most());
}

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::unique_ptr<State::Workspace> space = state_->take();
  Encoding encoding = state_->encode(text, nullptr, options.add_special_tokens, truncation_, *space);
  state_->give(std::move(space));
  if (padding_) pad(*padding_, {&encoding, 1});
  return encoding;
}

Encoding Tokenizer::encode(std::string_view text, std::string_view second, const EncodeOptions& options) const {
  std::unique_ptr<State::Workspace> space = state_->take();
  Encoding encoding = state_->encode(text, &second, options.add_special_tokens, truncation_, *space);
  state_->give(std::move(space));
  if (padding_) pad(*padding_, {&encoding, 1});
  return encoding;
}

std::vector<Encoding> Tokenizer::encode_batch(std::span<const std::string> texts, const EncodeOptions& options) const {
  std::vector<Encoding> encodings;
  encodings.reserve(texts.size());
  std::unique_ptr<State::Workspace> space = state_->take();
  for (const std::string& text : texts)
    encodings.push_back(state_->encode(text, nullptr, options.add_special_tokens, truncation_, *space));
  state_->give(std::move(space));
  if (padding_) pad(*padding_, encodings);
  return encodings;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, const DecodeOptions& options) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) {
    if (options.skip_special_tokens && state_->added.is_special(id)) continue;
    if (const auto token = state_->token(id)) tokens.emplace_back(*token);
  }
  return state_->decoders.text(std::move(tokens));
}

std::optional<std::int32_t> Tokenizer::id(std::string_view token) const {
  std::int32_t id = state_->added.vocabulary().find(token);
  if (id == Vocabulary::kNone) id = state_->model->vocabulary().find(token);
  if (id == Vocabulary::kNone) return std::nullopt;
  return id;
}

std::optional<std::string> Tokenizer::token(std::int32_t id) const {
  const auto token = state_->token(id);
  if (!token) return std::nullopt;
  return std::string(*token);
}

bool Tokenizer::is_special(std::int32_t id) const { return state_->added.is_special(id); }

const std::optional<Truncation>& Tokenizer::truncation() const { return truncation_; }
const std::optional<Padding>& Tokenizer::padding() const { return padding_; }

void Tokenizer::set_truncation(std::optional<Truncation> truncation) {
  if (truncation && (truncation->max_length < 0 || truncation->max_length > kMostLength))
    throw ArgumentError("tokenizer: expected a truncation to 0 to " + std::to_string(kMostLength) + " tokens, got " +
                        std::to_string(truncation->max_length));
  truncation_ = truncation;
}

void Tokenizer::set_padding(std::optional<Padding> padding) {
  const auto check = [](const char* what, std::int64_t value) {
    if (value < 0 || value > kMostLength)
      throw ArgumentError(std::string("tokenizer: expected a padding's ") + what + " from 0 to " +
                          std::to_string(kMostLength) + ", got " + std::to_string(value));
  };
  if (padding) {
    check("length", padding->length);
    check("multiple", padding->multiple_of);
  }
  padding_ = padding;
}

}  // namespace samebytes::text
