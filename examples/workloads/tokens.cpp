#include "workloads/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "workloads/workload.h"

namespace samebytes::workloads {
namespace {

constexpr const char* kCharacters = "characters";
constexpr std::int64_t kPublishedHeadWidth = 64;

std::optional<std::string> word(const io::Metadata& metadata, const std::string& key) {
  for (const auto& [name, value] : metadata)
    if (name == key) return value;
  return {};
}

}  // namespace

Tokens Tokens::characters(std::string_view text) {
  Tokens tokens;
  tokens.characters_ = data::CharTokenizer::from_text(text);
  return tokens;
}

Tokens Tokens::pairs(const std::string& folder) {
  Tokens tokens;
  tokens.pairs_ = data::BpeTokenizer::load(folder + "/vocab.json", folder + "/merges.txt");
  return tokens;
}

Tokens Tokens::characters_of(const io::Metadata& metadata) {
  const auto text = word(metadata, kCharacters);
  if (!text)
    throw OptionError("the file does not name its tokens; give --tokenizer DIR with vocab.json and merges.txt");
  return characters(*text);
}

std::int64_t Tokens::size() const { return characters_ ? characters_->size() : pairs_->size(); }

std::vector<std::int32_t> Tokens::encode(std::string_view text) const {
  return characters_ ? characters_->encode(text) : pairs_->encode(text);
}

std::string Tokens::decode(std::span<const std::int32_t> ids) const {
  return characters_ ? characters_->decode(ids) : pairs_->decode(ids);
}

std::string Tokens::all_characters() const {
  if (!characters_) return {};
  std::vector<std::int32_t> ids(static_cast<std::size_t>(characters_->size()));
  std::iota(ids.begin(), ids.end(), 0);
  return characters_->decode(ids);
}

io::Metadata words_of(const models::GptOptions& form, const Tokens& tokens) {
  io::Metadata words{{"format", "pt"},
                     {"model", "gpt"},
                     {"vocabulary", std::to_string(form.vocabulary)},
                     {"context", std::to_string(form.context)},
                     {"layers", std::to_string(form.layers)},
                     {"heads", std::to_string(form.heads)},
                     {"width", std::to_string(form.width)}};
  if (const std::string characters = tokens.all_characters(); !characters.empty())
    words.emplace_back(kCharacters, characters);
  return words;
}

models::GptOptions form_of(const io::TensorFile& file) {
  const auto shape_of = [&](const char* name) {
    const auto place = file.find(name);
    if (!place) throw OptionError(fmt::format("{}: not a GPT, it has no {}", file.path(), name));
    return file.tensors()[*place].shape;
  };
  const Shape tokens = shape_of("wte.weight"), positions = shape_of("wpe.weight");
  if (tokens.rank() != 2 || positions.rank() != 2)
    throw OptionError(fmt::format("{}: not a GPT, wte.weight is {}", file.path(), tokens.to_string()));
  models::GptOptions form{.vocabulary = tokens[0], .context = positions[0], .layers = 0, .width = tokens[1]};
  while (file.find(fmt::format("h.{}.ln_1.weight", form.layers))) ++form.layers;
  form.heads = std::max<std::int64_t>(1, form.width / kPublishedHeadWidth);
  if (const auto heads = word(file.metadata(), "heads")) form.heads = std::stoll(*heads);
  form.dropout = 0;
  return form;
}

}  // namespace samebytes::workloads
