// Pre-trains a small Llama of 17 million parameters on texts, for benchmarks/small_language_model.py.
//   build/check_pretrain FOLDER STEPS TEXT...
// Tokens are bytes, with three marks for conversations. FOLDER gets the model, tokenizer.json and a chat template, as a
// Hugging Face folder.
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "samebytes/data/text_samples.h"
#include "samebytes/models/pretrained.h"
#include "samebytes/samebytes.h"

namespace sb = samebytes;

namespace {

using Json = nlohmann::ordered_json;
constexpr std::int64_t kContext = 256, kBatch = 8, kVocabulary = 259;
constexpr double kRate = 1e-3;

// The character that stands for a byte in GPT-2's files: itself where it can be seen, else one from U+0100 on.
std::vector<std::string> byte_characters() {
  std::vector<std::string> characters(256);
  const auto utf8 = [](unsigned code) {
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    return std::string{static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
  };
  unsigned next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool is_seen =
        (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
    characters[byte] = utf8(is_seen ? byte : next++);
  }
  return characters;
}

void write_tokenizer(const std::string& folder) {
  Json vocabulary = Json::object(), added = Json::array();
  for (const std::string& character : byte_characters()) vocabulary[character] = vocabulary.size();
  for (const char* mark : {"<|user|>", "<|assistant|>", "<|end|>"})
    added.push_back({{"id", vocabulary.size() + added.size()},
                     {"content", mark},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  const Json bytes{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  const Json file{{"version", "1.0"},
                  {"truncation", nullptr},
                  {"padding", nullptr},
                  {"added_tokens", added},
                  {"normalizer", nullptr},
                  {"pre_tokenizer", bytes},
                  {"post_processor", nullptr},
                  {"decoder", bytes},
                  {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
  sb::io::write_file(folder + "/tokenizer.json", file.dump(1));
  const Json config{{"eos_token", "<|end|>"},
                    {"chat_template",
                     "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}"
                     "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"}};
  sb::io::write_file(folder + "/tokenizer_config.json", config.dump(1));
}

std::unique_ptr<sb::models::Pretrained> fresh_model() {
  const Json config{{"architectures", {"LlamaForCausalLM"}},
                    {"model_type", "llama"},
                    {"vocab_size", kVocabulary},
                    {"hidden_size", 512},
                    {"intermediate_size", 1280},
                    {"num_hidden_layers", 6},
                    {"num_attention_heads", 8},
                    {"num_key_value_heads", 4},
                    {"max_position_embeddings", 512},
                    {"rms_norm_eps", 1e-6},
                    {"rope_theta", 10000.0},
                    {"hidden_act", "silu"},
                    {"initializer_range", 0.02},
                    {"eos_token_id", 258},
                    {"tie_word_embeddings", true}};
  return sb::models::from_config(sb::models::Config::parse("config.json", config.dump()));
}

sb::data::TextRows windows_of(const std::vector<std::string>& paths) {
  std::vector<sb::data::TextSample> samples;
  for (const std::string& path : paths) {
    const std::string text = sb::data::read_text(path);
    for (std::size_t at = 0; at + kContext <= text.size(); at += kContext) {
      sb::data::TextSample::Piece piece;
      piece.counts = true;
      for (std::size_t i = 0; i < kContext; ++i) piece.ids.push_back(static_cast<unsigned char>(text[at + i]));
      samples.push_back({{std::move(piece)}});
    }
  }
  return sb::data::text_rows(samples, {.context = kContext, .packs = false});
}

void run(const std::string& folder, std::int64_t steps, const std::vector<std::string>& texts) {
  sb::Engine engine({.seed = 1});
  const auto model = fresh_model();
  const sb::data::TextRows rows = windows_of(texts);
  sb::data::Loader loader(engine, rows.set, {.batch = kBatch, .shuffle = true, .drop_last = true, .seed = 1});
  sb::optim::AdamW adam(model->parameters(), {.rate = kRate, .beta2 = 0.95, .weight_decay = 0.1, .clip_norm = 1});
  adam.set_schedule(
      sb::optim::Schedule{.decay = sb::optim::Decay::cosine, .rate = kRate, .warmup = steps / 20, .steps = steps});
  const auto begin = std::chrono::steady_clock::now();
  sb::Mean loss;
  std::int64_t step = 0;
  while (step < steps)
    for (const sb::data::Batch& batch : loader) {
      if (step == steps) break;
      const sb::Array one = sb::models::text_loss(*model, {.x = batch["ids"]}, batch["labels"]);
      adam.step(one);
      if (++step > steps - steps / 10 - 1) loss.add(one);
    }
  const double value = loss.value();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  sb::models::save_pretrained(folder, *model);
  write_tokenizer(folder);
  fmt::print("{}\n", Json{{"parameters", model->parameter_count()},
                          {"rows", rows.rows},
                          {"steps", steps},
                          {"loss", value},
                          {"seconds", seconds},
                          {"tokens_per_second", static_cast<double>(steps * kBatch * kContext) / seconds}}
                         .dump());
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t steps = 0;
  if (argc > 2) std::from_chars(argv[2], argv[2] + std::string(argv[2]).size(), steps);
  if (argc < 4 || steps < 1) {
    fmt::print(stderr, "check_pretrain FOLDER STEPS TEXT...\n");
    return 2;
  }
  try {
    run(argv[1], steps, {argv + 3, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
