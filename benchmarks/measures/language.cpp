// Speed and memory of language models, for benchmarks/language_peers.py. Prints one line of JSON.
//   build/measure_language generate MODEL PROMPT TOKENS STREAMS
//   build/measure_language lora FOLDER CONTEXT RANK none|q8|q4|nf4 STEPS f32|bf16
//   build/measure_language embed FOLDER TEXTS f32|bf16
// generate: prompts of PROMPT random ids, TOKENS greedy ones behind them. TEXTS is a file with a text a line.
// MODEL is a folder of Hugging Face or a GGUF file. Everything is done once before it is timed, so that kernels and
// plans are there.
#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"

namespace sb = samebytes;

namespace {

using Ids = std::vector<std::int32_t>;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Ids random_ids(std::int64_t count, std::int64_t vocabulary, std::int64_t number) {
  sb::Random random({.seed = 7, .index = number});
  Ids ids;
  for (std::int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(vocabulary))));
  return ids;
}

struct Speeds {
  double prompt = 0, token = 0;  // tokens a second, of all streams together
};

Speeds run_batch(sb::models::Pretrained& model, std::int64_t prompt, std::int64_t tokens, std::int64_t streams) {
  sb::models::TextBatch batch(model, {}, {.streams = streams, .context = prompt + tokens, .prompt_chunk = 512});
  const double start = now();
  double first = 0;  // when the last of the streams had read its prompt
  std::int64_t begun = 0, total = 0;
  for (std::int64_t i = 0; i < streams; ++i) {
    sb::models::GenerateOptions sampling{.tokens = tokens, .temperature = 0};
    sampling.on_token = [&, is_first = true](std::int32_t) mutable {
      if (std::exchange(is_first, false) && ++begun == streams) {
        first = now();
        total = 0;
      } else {
        ++total;
      }
      return true;
    };
    batch.add({.prompt = random_ids(prompt, model.vocabulary(), i), .sampling = std::move(sampling)});
  }
  while (batch.step()) {
  }
  return {static_cast<double>(prompt * streams) / (first - start), static_cast<double>(total) / (now() - first)};
}

void generate(const std::string& path, std::int64_t prompt, std::int64_t tokens, std::int64_t streams) {
  const double start = now();
  const auto model = sb::models::from_pretrained(path, {.keep_quantised = true, .keep_tables = true});
  const double opened = now() - start;
  run_batch(*model, prompt, std::min<std::int64_t>(tokens, 3), streams);
  const Speeds speeds = run_batch(*model, prompt, tokens, streams);
  fmt::print("{{\"prompt\": {:.2f}, \"token\": {:.3f}, \"open_seconds\": {:.3f}}}\n", speeds.prompt, speeds.token,
             opened);
}

void lora(const std::string& folder, std::int64_t context, std::int64_t rank, const std::string& quantise,
          std::int64_t steps, const std::string& precision) {
  const sb::ResidentPeak peak;
  using sb::models::Quantise;
  const auto model = sb::models::from_pretrained(folder, {.quantise = quantise == "q8"    ? Quantise::q8
                                                                      : quantise == "q4"  ? Quantise::q4
                                                                      : quantise == "nf4" ? Quantise::nf4
                                                                                          : Quantise::none});
  sb::models::apply_lora(*model, {.rank = rank, .alpha = 2.0 * static_cast<double>(rank)});
  model->train();
  sb::optim::AdamW adam(model->parameters(), {.rate = 2e-4});
  double start = 0, loss = 0;
  for (std::int64_t step = 0; step <= steps; ++step) {
    const sb::Array ids = sb::array(random_ids(context, model->vocabulary(), step), {1, context});
    sb::Array value;
    {
      const sb::Autocast scope({.dtype = sb::bf16, .enabled = precision == "bf16"});
      value = sb::models::text_loss(*model, {.x = ids}, ids);
    }
    adam.step(value);
    loss = value.value();
    if (step == 0) start = now();
  }
  const double seconds = now() - start;
  fmt::print("{{\"tokens_per_second\": {:.2f}, \"loss\": {:.4f}, \"peak_bytes\": {}}}\n",
             static_cast<double>(context * steps) / seconds, loss, peak.grown().value_or(0));
}

void embed(const std::string& folder, const std::string& path, const std::string& dtype) {
  std::ifstream file(path);
  std::vector<std::string> texts;
  for (std::string line; std::getline(file, line);) texts.push_back(line);
  auto encoder = sb::models::SentenceEncoder::load(folder, {.model = {.dtype = dtype == "bf16" ? sb::bf16 : sb::f32}});
  encoder.encode(texts);
  const double start = now();
  const sb::HostArray vectors = encoder.encode(texts);
  const double seconds = now() - start;
  const std::span<const float> values = vectors.as<float>();
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += static_cast<double>(values[i]) * static_cast<double>(i % 7);
  fmt::print("{{\"texts_per_second\": {:.2f}, \"checksum\": {:.6f}}}\n", static_cast<double>(texts.size()) / seconds,
             sum);
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> given(words + 1, words + count);
  const auto number = [&](std::size_t i) { return std::stoll(given.at(i)); };
  const sb::Engine engine;
  if (given.size() == 5 && given[0] == "generate")
    generate(given[1], number(2), number(3), number(4));
  else if (given.size() == 7 && given[0] == "lora")
    lora(given[1], number(2), number(3), given[4], number(5), given[6]);
  else if (given.size() == 4 && given[0] == "embed")
    embed(given[1], given[2], given[3]);
  else
    return fmt::print(
               stderr,
               "measure_language generate MODEL PROMPT TOKENS STREAMS | lora FOLDER CONTEXT RANK TYPE STEPS f32|bf16 "
               "| embed FOLDER TEXTS f32|bf16\n"),
           2;
  return 0;
}
