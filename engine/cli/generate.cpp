// samebytes generate: writes text with a GPT, token by token, as soon as there is one.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "cli/workloads.h"
#include "samebytes/samebytes.h"
#include "workloads/tokens.h"

namespace samebytes::cli {

int run_generate(const Options& options) {
  expect_one_device(options, "generate");
  Progress progress(stderr, options.json);
  progress.wait_for("reading " + options.load);
  const io::TensorFile file(options.load);
  expect_weights(file);
  const models::GptOptions form = workloads::form_of(file);
  const workloads::Tokens tokens = options.form.tokenizer ? workloads::Tokens::pairs(*options.form.tokenizer)
                                                          : workloads::Tokens::characters_of(file.metadata());
  if (tokens.size() != form.vocabulary)
    throw UsageError(
        fmt::format("{} has {} tokens, its tokenizer has {}", options.load, form.vocabulary, tokens.size()));
  std::vector<std::int32_t> prompt;
  try {
    prompt = tokens.encode(options.prompt);
  } catch (const ArgumentError& error) {
    throw UsageError(fmt::format("--prompt: {}", error.what()));
  }
  if (prompt.empty()) throw UsageError("--prompt is empty; give it at least one character to continue");

  const std::unique_ptr<Engine> engine = open_engine(options, options.device);
  models::Gpt net(form);
  io::load(options.load, net, {.strict = false});
  add_adapters(options, net);
  merge_adapters(net);
  progress.wait_for("compiling kernels");
  bool is_begun = false;
  const auto begin_text = [&] {
    if (!std::exchange(is_begun, true) && !options.json) progress.erase(), fmt::print("{}", options.prompt);
  };
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::int32_t> ids = models::generate(net, prompt,
                                                         {.tokens = options.tokens,
                                                          .temperature = options.temperature,
                                                          .top_k = options.top_k,
                                                          .seed = options.seed,
                                                          .on_token = [&](std::int32_t id) {
                                                            begin_text();
                                                            if (!options.json) {
                                                              fmt::print("{}", tokens.decode({&id, 1}));
                                                              std::fflush(stdout);
                                                            }
                                                            return !is_interrupted();
                                                          }});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto added = static_cast<std::int64_t>(ids.size() - prompt.size());
  if (options.json) {
    const nlohmann::ordered_json line{{"prompt", options.prompt},
                                      {"text", tokens.decode(ids)},
                                      {"tokens", added},
                                      {"seconds", seconds},
                                      {"tokens_per_second", static_cast<double>(added) / seconds}};
    print_json(line);
  } else {
    fmt::print("\n");
  }
  return is_interrupted() ? kInterrupted : kDone;
}

}  // namespace samebytes::cli
