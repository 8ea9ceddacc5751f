#include "cli/language.h"

#include <fmt/format.h>

#include "cli/usage_error.h"
#include "samebytes/models/lora.h"
#include "workloads/language_model.h"

namespace samebytes::cli {

void expect_language_folder(const Options& options) {
  const std::string& folder = options.workloads.front();
  if (!workloads::is_language_folder(folder))
    throw UsageError(fmt::format("{} has no config.json; expected a folder of Hugging Face", folder));
}

models::Quantise quantise_of(const Options& options) { return workloads::quantise_of(options.form); }

std::unique_ptr<models::Pretrained> open_language_model(const Options& options) {
  std::unique_ptr<models::Pretrained> model =
      models::from_pretrained(options.workloads.front(), {.quantise = quantise_of(options)});
  if (!options.lora.load.empty()) models::load_lora(options.lora.load, *model);
  return model;
}

}  // namespace samebytes::cli
