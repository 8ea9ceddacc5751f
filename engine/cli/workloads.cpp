#include "cli/workloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/text.h"
#include "cli/usage_error.h"
#include "samebytes/error.h"

namespace samebytes::cli {

Workload make_workload(const std::string& name, const WorkloadOptions& options) {
  std::vector<std::string> names;
  for (const WorkloadEntry& entry : workloads::all()) {
    names.push_back(entry.name);
    if (entry.name != name) continue;
    const auto check_option = [&](const char* option, bool is_given) {
      if (is_given && std::find(entry.takes.begin(), entry.takes.end(), option) == entry.takes.end())
        throw UsageError(fmt::format("{} has no {}", name, option));
    };
    check_option("--size", options.size.has_value());
    check_option("--context", options.context.has_value());
    check_option("--name", options.name.has_value());
    check_option("--tokenizer", options.tokenizer.has_value());
    return entry.make(options);
  }
  throw UsageError(
      fmt::format("there is no workload {}{}; there are {}", name, or_nearest(name, names), list_text(names)));
}

Workload with_head(const Workload& workload, const Options& options) {
  const HeadOptions& head = options.head;
  if (!head.is_chunked()) {
    if (head.is_late) throw UsageError("--late-head-gradient needs --head-chunks N|auto, with N above 1");
    return workload;
  }
  if (!workload.chunked_loss || workload.right || workload.is_binary)  // those need the output
    throw UsageError("--head-chunks: " + workload.name + " has no product with classes at its end that could be cut");
  Workload result = workload;
  result.whole_loss = [loss = workload.chunked_loss, head](nn::Module& net, const data::Batch& batch) {
    return loss(net, batch, {.chunks = std::max<std::int64_t>(0, head.chunks), .late_weight_gradient = head.is_late});
  };
  return result;
}

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
