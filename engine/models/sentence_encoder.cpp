#include "samebytes/models/sentence_encoder.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "core/json.h"
#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/io/files.h"
#include "samebytes/io/gguf.h"
#include "samebytes/values.h"

namespace samebytes::models {
namespace {

constexpr const char* kEncoderReader = "SentenceEncoder";
constexpr std::int64_t kStep = 8;  // lengths are padded to a multiple, so that batches share their plans

// A JSON file of the folder; null where it is not there.
nlohmann::json json_of(const std::filesystem::path& path) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return nullptr;
  const std::vector<std::byte> bytes = io::read_file(path.string());
  return detail::parse_json(kEncoderReader, path.string(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// llama.cpp's numbers of poolings.
SentenceOptions gguf_pooling(const std::string& path) {
  constexpr double kMean = 1, kFirst = 2;
  SentenceOptions options;
  for (const auto& [key, value] : io::read_gguf_values(path, "")) {
    if (!key.ends_with(".pooling_type") || value.numbers.size() != 1) continue;
    if (value.numbers.front() == kFirst)
      options.pooling = Pooling::first;
    else if (value.numbers.front() != kMean)
      detail::throw_io(kEncoderReader, path, -1, "the mean (1) or the first token (2) as " + key,
                       std::to_string(value.numbers.front()));
  }
  return options;
}

SentenceOptions pooling_of(const std::filesystem::path& folder) {
  if (io::is_gguf(folder.string())) return gguf_pooling(folder.string());
  const std::filesystem::path path = folder / "1_Pooling" / "config.json";
  const nlohmann::json config = json_of(path), modules = json_of(folder / "modules.json");
  SentenceOptions options;
  if (modules.is_array())
    options.normalise = std::any_of(modules.begin(), modules.end(), [](const nlohmann::json& one) {
      return one.is_object() && one.contains("type") && one["type"].is_string() &&
             one["type"].get_ref<const std::string&>().ends_with("Normalize");
    });
  if (!config.is_object()) return options;
  for (const auto& [key, value] : config.items()) {
    if (!key.starts_with("pooling_mode_") || !value.is_boolean() || !value.get<bool>()) continue;
    if (key == "pooling_mode_cls_token")
      options.pooling = Pooling::first;
    else if (key != "pooling_mode_mean_tokens")
      detail::throw_io(kEncoderReader, path.string(), -1, "the mean or the first token as pooling", key);
  }
  return options;
}

}  // namespace

SentenceEncoder SentenceEncoder::load(const std::string& folder, const SentenceEncoderOptions& options) {
  if (options.batch < 1)
    throw ArgumentError("SentenceEncoder: batch must be 1 or more, got " + std::to_string(options.batch));
  SentenceEncoder encoder(from_pretrained(folder, options.model), text::Tokenizer::load(folder), options);
  encoder.pooling_ = options.pooling ? *options.pooling : pooling_of(folder);
  encoder.width_ = encoder.model_->config().size("hidden_size");
  std::int64_t most = options.max_tokens;
  const std::filesystem::path path = std::filesystem::path(folder) / "sentence_bert_config.json";
  if (const nlohmann::json config = json_of(path); most == 0 && config.is_object())
    most = detail::reading_json(kEncoderReader, path.string(),
                                [&] { return config.value("max_seq_length", std::int64_t{0}); });
  // RoBERTa's positions begin behind those of padding.
  const std::int64_t context = encoder.model_->context() - (encoder.model_->kind() == "roberta" ? 2 : 0);
  if (most <= 0 || (context > 0 && most > context)) most = context;
  if (most > 0) encoder.tokenizer_.set_truncation(text::Truncation{.max_length = most});
  encoder.tokenizer_.set_padding({});
  return encoder;
}

HostArray SentenceEncoder::encode(std::span<const std::string> texts, const std::function<bool()>& should_stop) {
  const NoGrad no_grad;
  std::vector<std::vector<std::int32_t>> ids;
  for (const std::string& text : texts) {
    ids.push_back(tokenizer_.encode(text).ids);
    if (ids.back().empty()) ids.back().push_back(0);  // a text without tokens
  }
  std::vector<std::size_t> order(texts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return ids[a].size() < ids[b].size(); });
  const auto width = static_cast<std::size_t>(width_);
  std::vector<float> vectors(texts.size() * width);
  for (std::size_t from = 0; from < order.size(); from += static_cast<std::size_t>(options_.batch)) {
    if (should_stop && should_stop()) break;
    const std::size_t count = std::min(static_cast<std::size_t>(options_.batch), order.size() - from);
    const auto longest = static_cast<std::int64_t>(ids[order[from + count - 1]].size());
    const std::int64_t room = (longest + kStep - 1) / kStep * kStep;
    const std::int64_t tokens = model_->context() > 0 ? std::max(longest, std::min(room, model_->context())) : room;
    std::vector<std::int32_t> rows(count * static_cast<std::size_t>(tokens)), lengths;
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<std::int32_t>& one = ids[order[from + i]];
      std::copy(one.begin(), one.end(), rows.begin() + static_cast<std::ptrdiff_t>(i) * tokens);
      lengths.push_back(static_cast<std::int32_t>(one.size()));
    }
    const auto n = static_cast<std::int64_t>(count);
    const std::vector<float> found =
        sentence_vectors(*model_, {.x = array(rows, {n, tokens}), .lengths = array(lengths, {n})}, pooling_)
            .to_vector<float>();
    for (std::size_t i = 0; i < count; ++i)
      std::copy_n(found.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                  vectors.begin() + static_cast<std::ptrdiff_t>(order[from + i] * width));
  }
  return {Shape{static_cast<std::int64_t>(texts.size()), width_}, vectors};
}

}  // namespace samebytes::models
