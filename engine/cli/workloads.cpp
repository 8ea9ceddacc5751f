#include "cli/workloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cli/text.h"
#include "cli/usage_error.h"
#include "samebytes/data/fetch.h"
#include "samebytes/error.h"
#include "samebytes/models/lora.h"
#include "workloads/language_model.h"
#include "workloads/onnx_file.h"

namespace samebytes::cli {

namespace {

// Throws UsageError for an option that the workload does not take.
void check_taken(const std::string& name, const std::vector<std::string>& takes, const WorkloadOptions& options) {
  const std::pair<const char*, bool> given[] = {{"--size", options.size.has_value()},
                                                {"--context", options.context.has_value()},
                                                {"--name", options.name.has_value()},
                                                {"--tokenizer", options.tokenizer.has_value()},
                                                {"--mean", !options.mean.empty()},
                                                {"--std", !options.deviation.empty()},
                                                {"--validation", options.validation.has_value()},
                                                {"--dim", !options.dims.empty()},
                                                {"--quantise", options.quantise.has_value()},
                                                {"--dtype", options.dtype.has_value()}};
  for (const auto& [option, is_given] : given)
    if (is_given && std::find(takes.begin(), takes.end(), option) == takes.end())
      throw UsageError(fmt::format("{} has no {}", name, option));
}

std::vector<std::string> first_names(const nn::Module& net) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> names;
  for (const nn::NamedArray& entry : net.named_parameters())
    if (names.size() < kShown) names.push_back(entry.name);
  return names;
}

void freeze(nn::Module& net, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns)
    if (net.freeze_matching(pattern) == 0)
      throw UsageError(fmt::format("--freeze {}: no parameter has such a name; the first ones are {}", pattern,
                                   list_text(first_names(net))));
  if (!patterns.empty() && net.parameters().empty()) throw UsageError("--freeze leaves no parameter to train");
}

Workload with_frozen(Workload workload, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return workload;
  workload.make_model = [make = workload.make_model, patterns] {
    std::unique_ptr<nn::Module> net = make();
    freeze(*net, patterns);
    return net;
  };
  return workload;
}

}  // namespace

Workload make_workload(const std::string& name, const WorkloadOptions& options) {
  if (workloads::is_model_file(name)) {
    check_taken(name, {"--name", "--mean", "--std", "--validation", "--dim"}, options);
    return with_frozen(workloads::onnx_workload(name, options), options.freeze);
  }
  if (workloads::is_language_model(name)) {
    check_taken(name, {"--context", "--validation", "--quantise", "--dtype"}, options);
    return workloads::language_workload(name, options);
  }
  std::vector<std::string> names;
  for (const WorkloadEntry& entry : workloads::all()) {
    names.push_back(entry.name);
    if (entry.name != name) continue;
    check_taken(name, entry.takes, options);
    return with_frozen(entry.make(options), options.freeze);
  }
  for (const data::KnownSet& set : data::known_sets())
    if (set.name == name && !set.readers.empty())
      throw UsageError(
          fmt::format("{0} is a data set: `samebytes data {0}` gets it, `samebytes train {1} --data data/{0}` "
                      "learns it",
                      name, set.readers.back()));
  std::error_code code;
  if (std::filesystem::exists(name, code))
    throw UsageError(
        fmt::format("{} is no model's file; expected .onnx, or of a language model a folder with config.json or a GGUF "
                    "file",
                    name));
  throw UsageError(fmt::format("there is no workload {}{}; there are {}, or a model's file (.onnx)", shown(name),
                               or_nearest(name, names), list_text(names)));
}

std::vector<Workload> chosen_workloads(const Options& options) {
  std::vector<Workload> chosen;
  for (const std::string& name : options.workloads) chosen.push_back(make_workload(name, options.form));
  if (chosen.empty())
    for (const WorkloadEntry& entry : workloads::all()) chosen.push_back(make_workload(entry.name, options.form));
  return chosen;
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
    auto* const model = dynamic_cast<models::Pretrained*>(&net);
    text = (model != nullptr ? models::apply_lora(*model, wanted) : nn::apply_lora(net, wanted)).to_text();
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
