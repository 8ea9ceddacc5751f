// Options of train, bench and profile for the head of gpt: engine/cli/head.h.
#include <string>

#include "cli/option_groups.h"

namespace samebytes::cli {

void add_head(CLI::App& app, Options& options) {
  const CLI::Range range(std::int64_t{0}, std::int64_t{1} << 30);
  app.add_option_function<std::string>(
         "--head-chunks",
         [&options](const std::string& text) {
           options.head.chunks = text == "auto" ? HeadOptions::kAutomatic : std::stoll(text);
         },
         "of gpt: make logits, loss and gradients for one N-th of the tokens at a time, so that they are\n"
         "never all there; auto: by their size; 0 and 1: all at once; default: 1")
      ->option_text("N|auto")
      ->check([range](const std::string& text) {
        if (text == "auto" || range(text).empty()) return std::string();
        return "needs auto or a whole number from 0 on, '" + text + "' came";
      });
  app.add_flag("--late-head-gradient", options.head.is_late,
               "with --head-chunks: compute logits once more at the end of the backward pass, and only then\n"
               "the gradient of the token embedding, which does not lie in memory until then");
}

}  // namespace samebytes::cli
