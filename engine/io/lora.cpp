#include "samebytes/io/lora.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/io_error.h"
#include "core/json.h"
#include "io/state.h"
#include "samebytes/io/files.h"

namespace samebytes::io {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kPeftFile = "adapter_model.safetensors";
constexpr const char* kPeftConfig = "adapter_config.json";
// PEFT's prefix of the names of the network's layers, also for a network inside a model with a head.
constexpr const char* kPrefixes[] = {"base_model.model.", "base_model.model.transformer.", ""};

std::string config_beside(const std::string& path) {
  return (std::filesystem::path(path).parent_path() / kPeftConfig).string();
}

// LoraOptions as PEFT's LoraConfig.
Json to_json(const nn::LoraOptions& options) {
  Json json{{"peft_type", "LORA"},
            {"r", options.rank},
            {"lora_alpha", options.alpha},
            {"lora_dropout", options.dropout},
            {"use_rslora", options.rank_stabilized},
            {"bias", "none"}};
  const bool is_all = options.targets.size() == 1 && options.targets[0] == "all-linear";
  json["target_modules"] = is_all ? Json(options.targets[0]) : Json(options.targets);
  json["modules_to_save"] = options.modules_to_save.empty() ? Json() : Json(options.modules_to_save);
  return json;
}

std::vector<std::string> words_of(const Json& json, const char* key) {
  if (!json.contains(key) || json[key].is_null()) return {};
  if (json[key].is_string()) return {json[key].get<std::string>()};
  return json[key].get<std::vector<std::string>>();
}

// What other kinds of adapters have in their config, which would compute something else here.
void require_plain(const std::string& path, const Json& json) {
  const auto is_set = [](const Json& value) {
    return value.is_boolean() ? value.get<bool>() : !value.is_null() && !value.empty();
  };
  for (const char* key : {"use_dora", "use_qalora", "lora_bias", "rank_pattern", "alpha_pattern", "target_parameters",
                          "trainable_token_indices"})
    if (json.contains(key) && is_set(json[key]))
      detail::throw_io("lora_options", path, -1, fmt::format("a config without {}", key), json[key].dump());
  for (const auto& [key, plain] : {std::pair{"peft_type", "LORA"}, std::pair{"bias", "none"}})
    if (const std::string value = json.value(key, plain); value != plain)
      detail::throw_io("lora_options", path, -1, fmt::format("{} {}", key, plain), value.substr(0, 60));
}

nn::LoraOptions from_json(const std::string& path, const std::string& text) {
  try {
    const Json json = detail::parse_json<Json>("lora_options", path, text);
    require_plain(path, json);
    return {.rank = json.at("r").get<std::int64_t>(),
            .alpha = json.at("lora_alpha").get<double>(),
            .dropout = json.value("lora_dropout", 0.0),
            .rank_stabilized = json.value("use_rslora", false),
            .targets = words_of(json, "target_modules"),
            .modules_to_save = words_of(json, "modules_to_save")};
  } catch (const Json::exception& error) {
    detail::throw_io("lora_options", path, -1, "PEFT's LoraConfig with r, lora_alpha and target_modules",
                     detail::text_of_json_error(error));
  }
}

std::optional<std::string> own_words(const TensorFile& file) {
  for (const auto& [key, value] : file.metadata())
    if (key == "lora") return value;
  return {};
}

nn::LoraOptions options_of(const TensorFile& file) {
  if (const auto words = own_words(file)) return from_json(file.path(), *words);
  const std::string config = config_beside(file.path());
  if (!std::filesystem::exists(config))
    detail::throw_io("lora_options", file.path(), -1, fmt::format("adapters, or {} beside the file", kPeftConfig),
                     "a file without");
  const std::vector<std::byte> bytes = read_file(config);
  return from_json(config, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// What a file of PEFT's has, by the names of the module: layers with adapters, and modules that are trained in full.
// target_modules may be a regular expression or exclude some, and modules_to_save names what a model may have.
struct Contents {
  std::vector<std::string> layers, modules;
};
Contents contents_of(const TensorFile& file, std::span<const nn::NamedArray> state) {
  constexpr std::string_view kFirst = ".lora_A.weight", kSecond = ".lora_B.weight";
  Contents contents;
  const auto is_there = [&](const std::string& name) {
    return std::any_of(state.begin(), state.end(), [&](const auto& entry) { return entry.name.starts_with(name); });
  };
  for (const TensorInfo& tensor : file.tensors()) {
    if (tensor.name.ends_with(kSecond)) continue;
    const bool is_adapter = tensor.name.ends_with(kFirst);
    const std::size_t end = is_adapter ? tensor.name.size() - kFirst.size() : tensor.name.rfind('.');
    for (const std::string_view prefix : kPrefixes) {
      if (end == std::string::npos || !tensor.name.starts_with(prefix) || end < prefix.size()) continue;
      const std::string name = tensor.name.substr(prefix.size(), end - prefix.size());
      if (!is_there(name)) continue;
      std::vector<std::string>& names = is_adapter ? contents.layers : contents.modules;
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      break;
    }
  }
  return contents;
}

// The layers that have adapters, for options without targets, whose meaning depends on the network.
std::vector<std::string> layers_of(std::span<const nn::NamedArray> state) {
  constexpr std::string_view kFirst = "lora_A.weight";
  std::vector<std::string> layers;
  for (const nn::NamedArray& entry : state) {
    if (!entry.is_adapter || !entry.name.ends_with(kFirst)) continue;
    if (entry.name.size() == kFirst.size()) return {"all-linear"};  // the network is one layer
    layers.push_back(entry.name.substr(0, entry.name.size() - kFirst.size() - 1));
  }
  return layers;
}

// Before memory is taken for adapters of that rank.
void check_rank(const TensorFile& file, std::int64_t rank) {
  bool has_adapters = false;
  for (const TensorInfo& tensor : file.tensors()) {
    if (!tensor.name.ends_with("lora_A.weight")) continue;
    has_adapters = true;
    if (tensor.shape.rank() == 0 || tensor.shape[0] != rank)
      detail::throw_io("load_lora", file.path(), -1, "'" + tensor.name + "' with " + std::to_string(rank) + " rows",
                       tensor.shape.to_string());
  }
  if (!has_adapters) detail::throw_io("load_lora", file.path(), -1, "adapters, as lora_A.weight", "none");
}

bool is_transposed(const nn::NamedArray& entry) { return entry.layout == nn::Layout::linear_transposed; }

}  // namespace

void save_lora(const std::string& path, nn::Module& module, const Metadata& metadata) {
  std::vector<nn::NamedArray> state = nn::lora_state(module);
  nn::LoraOptions made = nn::lora_options(module);
  if (made.targets.empty()) made.targets = layers_of(state);
  Json options = to_json(made);
  for (nn::NamedArray& entry : state) entry.name = kPrefixes[0] + entry.name;
  Metadata words = metadata;
  words.emplace_back("lora", detail::to_text("save_lora", options));
  save_state(path, state, words);
  if (std::filesystem::path(path).filename() != kPeftFile) return;
  const std::vector<nn::NamedArray> all = module.state();
  options["fan_in_fan_out"] = std::any_of(all.begin(), all.end(), is_transposed);
  write_file(config_beside(path), detail::to_text("save_lora", options, 2) + "\n");
}

nn::LoraOptions lora_options(const std::string& path) { return options_of(TensorFile(path)); }

void load_lora(const std::string& path, nn::Module& module) {
  const TensorFile file(path);
  const bool is_new = !nn::has_lora(module);
  if (is_new) {
    nn::LoraOptions options = options_of(file);
    if (!own_words(file)) {
      Contents contents = contents_of(file, module.state());
      if (!contents.layers.empty()) options.targets = std::move(contents.layers);
      options.modules_to_save = std::move(contents.modules);
    }
    check_rank(file, options.rank);
    try {
      nn::apply_lora(module, options);
    } catch (const ArgumentError& error) {
      detail::throw_io("load_lora", path, -1, "adapters for " + module.describe(), error.what());
    }
  }
  std::vector<nn::NamedArray> state = nn::lora_state(module);
  const auto first = std::find_if(state.begin(), state.end(), [](const auto& entry) { return entry.is_adapter; });
  const auto* prefix = std::find_if(std::begin(kPrefixes), std::end(kPrefixes),
                                    [&](const char* one) { return file.find(one + first->name).has_value(); });
  for (nn::NamedArray& entry : state)
    entry.name = (prefix == std::end(kPrefixes) ? kPrefixes[0] : *prefix) + entry.name;
  try {
    load_state(file, state, {});
  } catch (...) {
    if (is_new) nn::unload_lora(module);
    throw;
  }
}

}  // namespace samebytes::io
