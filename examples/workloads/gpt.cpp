// gpt: GPT-2's architecture (models.h) on a text, of characters or, with --tokenizer, of GPT-2's byte pairs. nano: 4
// layers, 4 heads, width 128, context 64; small and medium as published.
#include "workloads/tokens.h"

#include <fmt/format.h>

#include "samebytes/ops.h"
#include "samebytes/random.h"
#include "workloads/workload.h"

namespace samebytes::workloads {
namespace {

constexpr std::int64_t kBenchCharacters = 65;
constexpr double kCausalShare = 0.5;  // of the scores that a causal attention computes

struct Size {
  models::GptSize size;
  Defaults defaults;
};

Size named_size(const std::string& name) {
  if (name == "nano")
    return {
        models::GptSize::nano,
        {.epochs = 1, .batch = 12, .steps = 2000, .rate = 2e-3, .weight_decay = 1e-1, .beta2 = 0.99, .clip_norm = 1}};
  const Defaults large{
      .epochs = 1, .batch = 4, .steps = 1000, .rate = 6e-4, .weight_decay = 1e-1, .beta2 = 0.95, .clip_norm = 1};
  return {name == "small" ? models::GptSize::small : models::GptSize::medium, large};
}

// Of one window: the products of the blocks and of the output, and the two of attention.
FlopCount count_gpt_flops(const models::GptOptions& options) {
  const auto tokens = static_cast<double>(options.context), width = static_cast<double>(options.width);
  FlopCount flops;
  for (std::int64_t layer = 0; layer < options.layers; ++layer)
    flops.linear(width, 3 * width, tokens)
        .linear(width, width, tokens)
        .linear(width, 4 * width, tokens)
        .linear(4 * width, width, tokens)
        .linear(2 * kCausalShare * tokens, width, tokens);
  return flops.linear(width, static_cast<double>(options.vocabulary), tokens).all_need_gradients();
}

data::DatasetPtr random_tokens(std::int64_t samples, const models::GptOptions& options) {
  return data::generate(samples,
                        {{.name = "ids", .shape = {options.context}, .dtype = i32},
                         {.name = "target", .shape = {options.context}, .dtype = i32}},
                        [vocabulary = static_cast<std::uint32_t>(options.vocabulary)](
                            std::int64_t index, std::span<const data::Field> sample) {
                          Random random({.seed = 1, .index = index});
                          for (const data::Field& field : sample)
                            for (std::int32_t& id : field.as<std::int32_t>())
                              id = static_cast<std::int32_t>(random.below(vocabulary));
                        });
}

}  // namespace

Workload gpt_workload(const WorkloadOptions& options) {
  const std::string size = options.size.value_or("nano");
  const Size chosen = named_size(size);
  models::GptOptions form = models::gpt_options(chosen.size);
  if (options.context) {
    if (size != "nano" && *options.context > form.context)
      throw OptionError(fmt::format("gpt --size {} has a context of at most {}, --context is {}", size, form.context,
                                    *options.context));
    form.context = *options.context;
  }
  std::vector<std::int32_t> ids;
  io::Metadata words;
  if (options.data.empty()) {
    if (chosen.size == models::GptSize::nano) form.vocabulary = kBenchCharacters;
  } else {
    const std::string text = data::read_text(options.data);
    const Tokens tokens = options.tokenizer ? Tokens::pairs(*options.tokenizer) : Tokens::characters(text);
    ids = tokens.encode(text);
    form.vocabulary = tokens.size();
    words = words_of(form, tokens);
  }
  return {.name = "gpt",
          .defaults = chosen.defaults,
          .flops = count_gpt_flops(form),
          .open =
              [options, form, ids](int) {
                needed_data("gpt", options,
                            "a text file: --data FILE (`samebytes data tinyshakespeare` says where to get one)");
                return data::token_split(ids, form.context, {.stride = 1});
              },
          .make_samples = [form](std::int64_t samples) { return random_tokens(samples, form); },
          .make_model = [form]() -> std::unique_ptr<nn::Module> { return std::make_unique<models::Gpt>(form); },
          .loss = [](const Array& logits, const data::Batch& batch) { return cross_entropy(logits, batch["target"]); },
          .chunked_loss =
              [](nn::Module& net, const data::Batch& batch, const LinearCrossEntropyOptions& head) {
                return dynamic_cast<models::Gpt&>(net).loss(batch[0], batch["target"], head);
              },
          .metadata = words};
}

}  // namespace samebytes::workloads
