#include "cli/lora.h"

#include "cli/usage_error.h"
#include "samebytes/error.h"

namespace samebytes::cli {

bool has_adapters(const Options& options) { return options.lora.rank || !options.lora.load.empty(); }

void check_lora(const Options& options) {
  const AdapterOptions& lora = options.lora;
  const auto refuse = [](const char* option, const char* why) { throw UsageError(std::string(option) + " " + why); };
  if (lora.rank && !lora.load.empty())
    refuse("--lora-rank", "makes new adapters, and --lora FILE reads existing ones; use one of the two");
  if (!lora.rank && !lora.save.empty() && lora.load.empty())
    refuse("--lora-save", "needs --lora-rank R or --lora FILE");
}

std::string add_adapters(const Options& options, nn::Module& net) {
  check_lora(options);
  if (!has_adapters(options)) return {};
  const AdapterOptions& lora = options.lora;
  nn::LoraOptions wanted;
  if (lora.rank) {
    wanted.rank = *lora.rank;
    wanted.alpha = lora.alpha.value_or(wanted.alpha);
    wanted.dropout = lora.dropout.value_or(wanted.dropout);
    wanted.targets = lora.targets;
  } else {
    wanted = io::lora_options(lora.load);
  }
  std::string text;
  try {
    text = nn::apply_lora(net, wanted).to_text();
  } catch (const ArgumentError& error) {
    throw UsageError(std::string(lora.rank ? "--lora-targets: " : "--lora: ") + error.what());
  }
  if (!lora.load.empty() && !options.limit.rehearses) io::load_lora(lora.load, net);
  return "lora: " + text;
}

void save_adapters(const Options& options, nn::Module& net, const io::Metadata& metadata) {
  if (!options.lora.save.empty()) io::save_lora(options.lora.save, net, metadata);
}

void merge_adapters(nn::Module& net) {
  if (!nn::has_lora(net)) return;
  nn::merge_lora(net);
  nn::unload_lora(net);
}

}  // namespace samebytes::cli
