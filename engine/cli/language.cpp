#include "cli/language.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/usage_error.h"
#include "samebytes/models/lora.h"
#include "workloads/language_model.h"

namespace samebytes::cli {

void expect_language_model(const Options& options) {
  const std::string& path = options.workloads.front();
  if (workloads::is_language_model(path)) return;
  std::error_code code;
  const std::filesystem::file_status status = std::filesystem::status(path, code);
  const char* const trouble = !std::filesystem::exists(status)        ? "does not exist"
                              : std::filesystem::is_directory(status) ? "has no config.json"
                                                                      : "is no GGUF file";
  throw UsageError(fmt::format("{} {}; expected a folder of Hugging Face, or a GGUF file", path, trouble));
}

models::PretrainedOptions opening_of(const Options& options) {
  models::PretrainedOptions result = workloads::opening_of(options.workloads.front(), options.form);
  result.keep_tables = result.keep_quantised;
  return result;
}

std::unique_ptr<models::Pretrained> open_language_model(const Options& options) {
  std::unique_ptr<models::Pretrained> model = models::from_pretrained(options.workloads.front(), opening_of(options));
  if (!options.lora.load.empty()) models::load_lora(options.lora.load, *model);
  return model;
}

}  // namespace samebytes::cli
