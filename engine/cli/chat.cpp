// samebytes chat: a conversation with a language model, over the terminal or over pipes.
#include "samebytes/models/chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "cli/interrupt.h"
#include "cli/language.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"

namespace samebytes::cli {
namespace {

models::ReplyOptions reply_options(const Options& options) {
  const LanguageOptions& language = options.language;
  models::ReplyOptions reply{.sampling = {.tokens = options.tokens,
                                          .temperature = options.temperature,
                                          .top_k = options.top_k,
                                          .top_p = language.top_p,
                                          .min_p = language.min_p,
                                          .repetition_penalty = language.repetition_penalty,
                                          .seed = options.seed,
                                          .on_token = [](std::int32_t) { return !is_interrupted(); }},
                             .stop = language.stop};
  if (!options.json)
    reply.on_text = [](std::string_view text) {
      fmt::print("{}", text);
      std::fflush(stdout);
      return true;
    };
  return reply;
}

}  // namespace

int run_chat(const Options& options) {
  expect_language_model(options);
  Progress progress(stderr, options.json || options.quiet);
  progress.wait_for("opening " + options.workloads.front());
  const std::unique_ptr<Engine> engine = open_engine(options, options.device);
  const std::unique_ptr<models::Pretrained> model = open_language_model(options);
  models::Chat chat = models::Chat::open(options.workloads.front(), *model);
  const auto begin = [&] {
    chat.clear();
    if (!options.language.system.empty()) chat.add("system", options.language.system);
  };
  begin();
  progress.erase();
  const bool is_terminal = isatty(STDIN_FILENO) != 0 && !options.json;
  if (!chat.has_template() && !options.quiet)
    fmt::print(stderr, "samebytes: {} has no chat template; each line is a text to go on with\n",
               options.workloads.front());
  const models::ReplyOptions how = reply_options(options);
  for (std::string line;;) {
    if (is_terminal) fmt::print("> "), std::fflush(stdout);
    if (is_interrupted() || !std::getline(std::cin, line) || line == "/quit") break;
    if (line == "/clear") {
      begin();
      continue;
    }
    if (line.empty()) continue;
    if (!chat.has_template()) begin();
    const auto start = std::chrono::steady_clock::now();
    const models::Reply reply = chat.reply(line, how);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (options.json)
      fmt::print("{}\n", to_line({{"message", line},
                                  {"answer", reply.text},
                                  {"prompt_tokens", reply.prompt_tokens},
                                  {"tokens", reply.tokens},
                                  {"seconds", seconds},
                                  {"tokens_per_second", static_cast<double>(reply.tokens) / seconds}}));
    else
      fmt::print("\n");
    std::fflush(stdout);
    if (is_interrupted()) break;
  }
  if (is_terminal) fmt::print("\n");
  return is_interrupted() ? kInterrupted : kDone;
}

}  // namespace samebytes::cli
