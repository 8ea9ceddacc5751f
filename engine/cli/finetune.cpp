// samebytes finetune: adapters beside a language model learn the answers of conversations; `train` with a workload that
// is made of the folder.
#include <fmt/format.h>

#include "cli/language.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "cli/workloads.h"
#include "samebytes/models/lora.h"
#include "workloads/language_model.h"

namespace samebytes::cli {
namespace {

constexpr std::int64_t kUsualRank = 16;
constexpr double kAlphaOfRank = 2;

}  // namespace

int run_finetune(const Options& asked) {
  const std::string& folder = asked.workloads.front();
  expect_language_model(asked);
  Options options = asked;
  if (!options.lora.rank) options.lora.rank = kUsualRank;
  if (!options.lora.alpha) options.lora.alpha = kAlphaOfRank * static_cast<double>(*options.lora.rank);
  if (options.save.empty()) options.save = "adapters";
  const int status = train_workload(options, [&] { return workloads::language_workload(folder, options.form); });
  std::FILE* const out = stream_for_people(options);
  fmt::print(out, "adapters: {}; `samebytes chat {} --adapter {}` talks with them\n", options.save, folder,
             options.save);
  if (options.merged.empty()) return status;
  const std::unique_ptr<Engine> engine = open_engine(options, options.device);
  models::save_merged(options.merged, folder, options.save);
  fmt::print(out, "merged: {}\n", options.merged);
  return status;
}

}  // namespace samebytes::cli
