// What llama.cpp's llama-vocab.cpp makes of the metadata, said in the words of tokenizer.json, so that one reader
// builds all tokenizers: "gpt2" is byte-level BPE, whose pattern tokenizer.ggml.pre names; "llama" is SentencePiece's
// BPE, whose pairs follow from the scores of its pieces; "bert" is WordPiece, whose words begin with a metaspace.
#include "text/gguf_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/json.h"
#include "samebytes/io/gguf.h"
#include "samebytes/text/tokenizer.h"
#include "text/utf8.h"
#include "text/word_patterns.h"

namespace samebytes::detail {
namespace {

using GgufJson = nlohmann::json;

constexpr std::string_view kGgufPrefix = "tokenizer.";
constexpr std::string_view kSpaceMark = "\u2581";
constexpr std::size_t kLongestPiece = 256;  // bytes of a piece that others are paired to

// llama.cpp's types of tokens.
constexpr int kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kByte = 6;

constexpr const char* kTekken = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
                                R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
                                R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// How text is cut into words, by what tokenizer.ggml.pre says.
enum class TextCut : char { gpt2, digits, llama3, qwen2, tekken, plain };
struct CutRow {
  const char* name;
  TextCut cut;
  bool takes_whole_words;  // a word that is a token is not paired
  bool begins;             // texts begin with the bos token where the file does not say
};
constexpr CutRow kCuts[] = {
    {"default", TextCut::plain, false, false},    {"gpt-2", TextCut::gpt2, false, false},
    {"phi-2", TextCut::gpt2, false, false},       {"olmo", TextCut::gpt2, false, false},
    {"mpt", TextCut::gpt2, false, false},         {"smollm", TextCut::digits, false, false},
    {"starcoder", TextCut::digits, false, false}, {"refact", TextCut::digits, false, false},
    {"command-r", TextCut::digits, false, false}, {"llama3", TextCut::llama3, true, true},
    {"llama-v3", TextCut::llama3, true, true},    {"llama-bpe", TextCut::llama3, true, true},
    {"smaug-bpe", TextCut::llama3, true, true},   {"dbrx", TextCut::llama3, true, true},
    {"qwen2", TextCut::qwen2, false, false},      {"deepseek-r1-qwen", TextCut::qwen2, false, false},
    {"stablelm2", TextCut::qwen2, false, false},  {"tekken", TextCut::tekken, true, true}};

class GgufMetadata {
 public:
  explicit GgufMetadata(const std::string& path)
      : path_(path), values_(io::read_gguf_values(path, std::string(kGgufPrefix))) {}

  const std::string& path() const { return path_; }
  [[noreturn]] void fail(const std::string& key, const std::string& expected, const std::string& found) const {
    throw_io("tokenizer", path_, -1, expected + " as " + std::string(kGgufPrefix) + key, found);
  }
  const io::GgufValue* find(const std::string& key) const {
    const auto found = values_.find(std::string(kGgufPrefix) + key);
    return found == values_.end() ? nullptr : &found->second;
  }
  std::optional<std::string> text(const std::string& key) const {
    const io::GgufValue* found = find(key);
    if (found == nullptr) return std::nullopt;
    if (found->texts.size() != 1) fail(key, "a text", "another value");
    return found->texts.front();
  }
  bool flag(const std::string& key, bool fallback) const {
    const io::GgufValue* found = find(key);
    if (found == nullptr) return fallback;
    if (found->numbers.size() != 1) fail(key, "true or false", "another value");
    return found->numbers.front() != 0;
  }
  const std::vector<std::string>& tokens() const {
    const io::GgufValue* found = find("ggml.tokens");
    if (found == nullptr || found->texts.empty()) fail("ggml.tokens", "a list of texts", found ? "others" : "nothing");
    return found->texts;
  }
  // A number for each token; empty where there is no such list.
  std::vector<double> for_tokens(const std::string& key) const {
    const io::GgufValue* found = find(key);
    if (found == nullptr) return {};
    if (found->numbers.size() != tokens().size())
      fail(key, std::to_string(tokens().size()) + " numbers", std::to_string(found->numbers.size()));
    return found->numbers;
  }
  std::optional<std::int32_t> id(const std::string& key) const {
    const io::GgufValue* found = find(key);
    if (found == nullptr) return std::nullopt;
    const double value = found->numbers.size() == 1 ? found->numbers.front() : -1;
    if (!(value >= 0 && value < static_cast<double>(tokens().size())))
      fail(key, "a number below " + std::to_string(tokens().size()), std::to_string(value));
    return static_cast<std::int32_t>(value);
  }
  std::int32_t needed_id(const std::string& key) const {
    const auto found = id(key);
    if (!found) fail(key, "the number of a token", "nothing");
    return *found;
  }

 private:
  std::string path_;
  std::map<std::string, io::GgufValue> values_;
};

GgufJson numbered(const std::vector<std::string>& tokens) {
  GgufJson vocabulary = GgufJson::object();
  for (std::size_t i = 0; i < tokens.size(); ++i) vocabulary[tokens[i]] = i;
  return vocabulary;
}

GgufJson added_of(const GgufMetadata& data, const std::vector<double>& types) {
  GgufJson added = GgufJson::array();
  for (std::size_t i = 0; i < types.size(); ++i) {
    const int type = static_cast<int>(types[i]);
    if (type != kUnknown && type != kControl && type != kUserDefined) continue;
    added.push_back({{"id", i},
                     {"content", data.tokens()[i]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", type != kUserDefined}});
  }
  return added;
}

// The bos token before texts and the eos token behind them, as far as the file wants them.
GgufJson template_for(const GgufMetadata& data, bool begins, bool ends) {
  GgufJson single = GgufJson::array(), pair = GgufJson::array(), tokens = GgufJson::object();
  const auto add = [&](GgufJson& list, const char* key, int type) {
    const std::int32_t id = data.needed_id(key);
    const std::string& token = data.tokens()[static_cast<std::size_t>(id)];
    list.push_back({{"SpecialToken", {{"id", token}, {"type_id", type}}}});
    tokens[token] = {{"id", token}, {"ids", {static_cast<std::uint32_t>(id)}}, {"tokens", {token}}};
  };
  const auto add_text = [&](GgufJson& list, const char* name, int type) {
    if (begins) add(list, "ggml.bos_token_id", type);
    list.push_back({{"Sequence", {{"id", name}, {"type_id", type}}}});
    if (ends) add(list, "ggml.eos_token_id", type);
  };
  add_text(single, "A", 0);
  add_text(pair, "A", 0);
  add_text(pair, "B", 1);
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", tokens}};
}

GgufJson split_step(std::string_view regex) {
  return {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
}

GgufJson bytes_of_words(bool has_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", has_regex}};
}

GgufJson steps_in_turn(GgufJson parts) { return {{"type", "Sequence"}, {"pretokenizers", std::move(parts)}}; }

GgufJson pre_tokenizer_of(TextCut cut) {
  switch (cut) {
    case TextCut::gpt2: break;
    case TextCut::digits:
      return steps_in_turn({{{"type", "Digits"}, {"individual_digits", true}}, bytes_of_words(true)});
    case TextCut::llama3: return steps_in_turn({split_step(regex_of(WordPattern::llama3)), bytes_of_words(false)});
    case TextCut::qwen2: return steps_in_turn({split_step(regex_of(WordPattern::qwen2)), bytes_of_words(false)});
    case TextCut::tekken: return steps_in_turn({split_step(kTekken), bytes_of_words(false)});
    case TextCut::plain:
      return steps_in_turn({split_step(R"([\p{P}\$\+<=>\^~\|]+)"), split_step(regex_of(WordPattern::gpt2)),
                            split_step(R"(\p{N}+)"), split_step("[0-9][0-9][0-9]"), bytes_of_words(false)});
  }
  return bytes_of_words(true);
}

GgufJson byte_pairs(const GgufMetadata& data) {
  const std::string name = data.text("ggml.pre").value_or("default");
  const auto* const row =
      std::find_if(std::begin(kCuts), std::end(kCuts), [&](const auto& one) { return name == one.name; });
  if (row == std::end(kCuts)) {
    std::string known;
    for (const CutRow& one : kCuts) known += (known.empty() ? "" : ", ") + std::string(one.name);
    data.fail("ggml.pre", known, "'" + name.substr(0, 60) + "'");
  }
  const io::GgufValue* merges = data.find("ggml.merges");
  if (merges == nullptr) data.fail("ggml.merges", "a list of pairs", "nothing");
  GgufJson result{{"pre_tokenizer", pre_tokenizer_of(row->cut)},
                  {"decoder", bytes_of_words(true)},
                  {"post_processor", template_for(data, data.flag("ggml.add_bos_token", row->begins),
                                                  data.flag("ggml.add_eos_token", false))},
                  {"model",
                   {{"type", "BPE"},
                    {"ignore_merges", row->takes_whole_words},
                    {"vocab", numbered(data.tokens())},
                    {"merges", merges->texts}}}};
  // Models whose texts were composed before they were cut.
  if (row->cut == TextCut::qwen2) result["normalizer"] = {{"type", "NFC"}};
  return result;
}

// All pairs of pieces that are a piece together, the best scores first, as the tokenizers package orders them.
GgufJson pairs_of_pieces(const GgufMetadata& data, const std::vector<double>& scores,
                         const std::vector<double>& types) {
  struct Pair {
    double score;
    std::int32_t left, right;
    std::size_t left_length, right_length;  // characters
  };
  const std::vector<std::string>& tokens = data.tokens();
  std::unordered_map<std::string_view, std::int32_t> pieces;
  const auto is_piece = [&](std::size_t i) {
    const int type = types.empty() ? kNormal : static_cast<int>(types[i]);
    return type != kUnknown && type != kControl && type != kByte;
  };
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (is_piece(i)) pieces.emplace(tokens[i], static_cast<std::int32_t>(i));
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view token = tokens[i];
    if (!is_piece(i)) continue;
    if (token.size() > kLongestPiece)
      data.fail("ggml.tokens", "pieces of at most " + std::to_string(kLongestPiece) + " bytes",
                std::to_string(token.size()));
    const std::size_t first = pairs.size();
    std::size_t characters = 0;
    for (std::size_t at = 0; at < token.size(); at += bytes_of_first(token[at])) ++characters;
    std::size_t length = 0;
    for (std::size_t at = 0; at < token.size(); at += bytes_of_first(token[at]), ++length) {
      if (at == 0) continue;
      const auto left = pieces.find(token.substr(0, at)), right = pieces.find(token.substr(at));
      if (left == pieces.end() || right == pieces.end()) continue;
      pairs.push_back({scores[i], left->second, right->second, length, characters - length});
    }
    std::sort(pairs.begin() + static_cast<std::ptrdiff_t>(first), pairs.end(),
              [](const Pair& a, const Pair& b) { return a.left != b.left ? a.left < b.left : a.right < b.right; });
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.left_length != b.left_length ? a.left_length > b.left_length : a.right_length > b.right_length;
  });
  GgufJson result = GgufJson::array();
  for (const Pair& pair : pairs)
    result.push_back({tokens[static_cast<std::size_t>(pair.left)], tokens[static_cast<std::size_t>(pair.right)]});
  return result;
}

GgufJson scored_pieces(const GgufMetadata& data, const std::vector<double>& types) {
  const std::vector<double> scores = data.for_tokens("ggml.scores");
  if (scores.empty()) data.fail("ggml.scores", "a score for each token", "nothing");
  for (const double score : scores)
    if (std::isnan(score)) data.fail("ggml.scores", "numbers", "a NaN");
  const GgufJson text{{"String", kSpaceMark}}, blank{{"String", " "}};
  GgufJson replaced{{"type", "Replace"}, {"pattern", blank}, {"content", kSpaceMark}};
  GgufJson decoders = GgufJson::array(
      {{{"type", "Replace"}, {"pattern", text}, {"content", " "}}, {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  GgufJson normalizers = GgufJson::array();
  if (data.flag("ggml.add_space_prefix", true)) {
    normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpaceMark}});
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  normalizers.push_back(std::move(replaced));
  const std::vector<std::string>& tokens = data.tokens();
  const bool has_bytes = std::find(tokens.begin(), tokens.end(), "<0x00>") != tokens.end();
  GgufJson model{{"type", "BPE"},
                 {"byte_fallback", has_bytes},
                 {"fuse_unk", true},
                 {"vocab", numbered(tokens)},
                 {"merges", pairs_of_pieces(data, scores, types)}};
  if (const auto unknown = data.id("ggml.unknown_token_id"))
    model["unk_token"] = tokens[static_cast<std::size_t>(*unknown)];
  return {{"normalizer", {{"type", "Sequence"}, {"normalizers", normalizers}}},
          {"decoder", {{"type", "Sequence"}, {"decoders", decoders}}},
          {"post_processor",
           template_for(data, data.flag("ggml.add_bos_token", true), data.flag("ggml.add_eos_token", false))},
          {"model", std::move(model)}};
}

GgufJson word_pieces(const GgufMetadata& data) {
  const auto special = [&](const char* key, const char* other) {
    const auto found = data.id(key);
    return found ? *found : data.needed_id(other);
  };
  const std::int32_t cls = special("ggml.cls_token_id", "ggml.bos_token_id");
  const std::int32_t sep = special("ggml.seperator_token_id", "ggml.eos_token_id");  // the format spells it so
  const std::int32_t unknown = data.needed_id("ggml.unknown_token_id");
  std::vector<std::string> tokens = data.tokens();
  for (std::string& token : tokens) {
    if (token.starts_with(kSpaceMark))
      token.erase(0, kSpaceMark.size());
    else if (!(token.starts_with('[') && token.ends_with(']')))
      token.insert(0, "##");
  }
  const auto named = [&](std::int32_t id) {
    return GgufJson::array({tokens[static_cast<std::size_t>(id)], static_cast<std::uint32_t>(id)});
  };
  return {{"normalizer",
           {{"type", "BertNormalizer"},
            {"clean_text", true},
            {"handle_chinese_chars", true},
            {"strip_accents", nullptr},
            {"lowercase", true}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor", {{"type", "BertProcessing"}, {"sep", named(sep)}, {"cls", named(cls)}}},
          {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", tokens[static_cast<std::size_t>(unknown)]},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", 100},
            {"vocab", numbered(tokens)}}}};
}

GgufJson tokenizer_of(const GgufMetadata& data) {
  if (const auto whole = data.text("huggingface.json")) return parse_json("tokenizer", data.path(), *whole);
  const std::string kind = data.text("ggml.model").value_or("");
  const std::vector<double> types = data.for_tokens("ggml.token_type");
  for (const double type : types)
    if (!(type >= 0 && type <= 255)) data.fail("ggml.token_type", "types of 0 to 255", std::to_string(type));
  GgufJson result;
  if (kind == "gpt2")
    result = byte_pairs(data);
  else if (kind == "llama")
    result = scored_pieces(data, types);
  else if (kind == "bert")
    result = word_pieces(data);
  else
    data.fail("ggml.model", "gpt2, llama or bert", kind.empty() ? "nothing" : "'" + kind.substr(0, 60) + "'");
  result["version"] = "1.0";
  result["added_tokens"] = added_of(data, types);
  return result;
}

nlohmann::ordered_json special_tokens_of(const GgufMetadata& data) {
  nlohmann::ordered_json config = nlohmann::ordered_json::object();
  for (const auto& [name, key] : {std::pair{"bos_token", "ggml.bos_token_id"},
                                  {"eos_token", "ggml.eos_token_id"},
                                  {"unk_token", "ggml.unknown_token_id"},
                                  {"pad_token", "ggml.padding_token_id"}})
    if (const auto id = data.id(key)) config[name] = data.tokens()[static_cast<std::size_t>(*id)];
  if (const auto text = data.text("chat_template")) config["chat_template"] = *text;
  config["clean_up_tokenization_spaces"] = false;
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  return config;
}

}  // namespace

GgufTokenizer read_gguf_tokenizer(const std::string& path) {
  const GgufMetadata data(path);
  return {tokenizer_of(data), special_tokens_of(data)};
}

nlohmann::ordered_json read_gguf_tokenizer_config(const std::string& path) {
  return special_tokens_of(GgufMetadata(path));
}

}  // namespace samebytes::detail

namespace samebytes::text {

TokenizerFiles gguf_tokenizer_files(const std::string& path) {
  return detail::reading_json("tokenizer", path, [&] {
    const detail::GgufTokenizer files = detail::read_gguf_tokenizer(path);
    return TokenizerFiles{detail::to_line(files.tokenizer), detail::to_line(files.config)};
  });
}

}  // namespace samebytes::text
