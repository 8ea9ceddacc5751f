#include "samebytes/models/lora.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/json.h"
#include "models/layers.h"
#include "samebytes/error.h"
#include "samebytes/io/files.h"
#include "samebytes/io/gguf.h"
#include "samebytes/io/lora.h"
#include "samebytes/text/tokenizer.h"

namespace samebytes::models {
namespace {

constexpr const char* kFile = "adapter_model.safetensors";
constexpr const char* kConfig = "adapter_config.json";
constexpr const char* kAllLinear = "all-linear";

// Layers over the vocabulary or the labels. RoBERTa's classifier ends in out_proj, as no attention of the families
// does.
bool is_head(const std::string& name) {
  static const std::set<std::string> heads{"lm_head", "score", "classifier", "out_proj"};
  return heads.contains(name.substr(name.rfind('.') + 1));
}

// The names of a module's projections, quantised ones too, which are no parameters.
class Projections final : public nn::Visitor {
 public:
  void parameter(std::string_view, const nn::Parameter&, nn::Layout) override {}
  void buffer(std::string_view, const nn::Buffer&) override {}
  void child(std::string_view name, nn::Module& module) override {
    const std::string before = path_;
    path_ = joined(name);
    module.visit(*this);
    path_ = before;
  }
  void projection(std::string_view name, const Array&, nn::Adapter&) override { names.push_back(joined(name)); }

  std::vector<std::string> names = {};

 private:
  std::string joined(std::string_view name) const {
    if (name.empty() || path_.empty()) return path_ + std::string(name);
    return path_ + "." + std::string(name);
  }
  std::string path_;
};
std::vector<std::string> linear_layers(Pretrained& model) {
  Projections projections;
  model.visit(projections);
  return projections.names;
}

// What PEFT calls the use of a model with this head.
const char* task_of(const Config& config) {
  struct Row {
    const char *head, *task;
  };
  constexpr Row kRows[] = {{"CausalLM", "CAUSAL_LM"},
                           {"SequenceClassification", "SEQ_CLS"},
                           {"TokenClassification", "TOKEN_CLS"},
                           {"Model", "FEATURE_EXTRACTION"}};
  const std::string head = head_of(config);
  for (const Row& row : kRows)
    if (head == row.head) return row.task;
  return nullptr;
}

std::string in(const std::string& folder, const char* file) { return (std::filesystem::path(folder) / file).string(); }

// The tensors of a file under the names of transformers, which has one more part in front.
void put_prefix(const std::string& path, const std::string& prefix) {
  constexpr std::string_view kFirst = "base_model.model.";
  const io::TensorFile file(path);
  std::vector<HostArray> values;
  std::vector<io::TensorView> views;
  for (std::size_t i = 0; i < file.tensors().size(); ++i) values.push_back(file.read(i));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::string name = file.tensors()[i].name;
    name.insert(kFirst.size(), prefix + ".");
    views.push_back({std::move(name), values[i].dtype, values[i].shape, values[i].bytes});
  }
  io::save_tensors(path, views, file.metadata());
}

}  // namespace

std::vector<std::string> lora_targets(const Pretrained& model) {
  struct Row {
    const char* type;
    std::vector<std::string> targets;
  };
  static const std::vector<Row> rows{{"gpt2", {"c_attn"}},
                                     {"phi3", {"qkv_proj"}},
                                     {"bert", {"query", "value"}},
                                     {"roberta", {"query", "value"}},
                                     {"distilbert", {"q_lin", "v_lin"}},
                                     {"xlm-roberta", {"query", "value"}},
                                     {"vit", {"query", "value"}},
                                     {"deit", {"query", "value"}}};
  const std::string type = model.config().text("model_type");
  for (const Row& row : rows)
    if (type == row.type) return row.targets;
  if (model.is_decoder()) return {"q_proj", "v_proj"};
  return {};
}

nn::LoraReport apply_lora(Pretrained& model, const nn::LoraOptions& options) {
  nn::LoraOptions chosen = options;
  if (chosen.targets.empty()) {
    chosen.targets = lora_targets(model);
    if (chosen.targets.empty())
      throw ArgumentError("apply_lora: " + model.kind() +
                          " has no default layers; name them in targets, or all-linear");
  } else if (chosen.targets == std::vector<std::string>{kAllLinear}) {
    chosen.targets = linear_layers(model);
    std::erase_if(chosen.targets, is_head);
  }
  return nn::apply_lora(model, chosen);
}

void save_lora(const std::string& folder, Pretrained& model, const std::string& base) {
  if (!nn::has_lora(model)) throw ArgumentError("save_lora: " + model.kind() + " has no adapters; apply_lora() first");
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) throw IoError("save_lora: " + folder + ": expected a folder: " + code.message(), folder);
  const std::string path = in(folder, kFile), config = in(folder, kConfig);
  io::save_lora(path, model);
  if (const std::string prefix = model.adapter_prefix(); !prefix.empty()) put_prefix(path, prefix);
  const std::vector<std::byte> bytes = io::read_file(config);
  auto json = detail::parse_json<nlohmann::ordered_json>(
      "save_lora", config, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  json["base_model_name_or_path"] = base.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(base);
  // PEFT takes a classifier's head for part of the adapters, so the file must have it.
  const char* task = task_of(model.config());
  if (task != nullptr && std::string_view(task).ends_with("_CLS") && json["modules_to_save"].is_null()) task = nullptr;
  json["task_type"] = task == nullptr ? nlohmann::ordered_json() : nlohmann::ordered_json(task);
  io::write_file(config, detail::to_text("save_lora", json, 2) + "\n");
}

void load_lora(const std::string& folder, Pretrained& model) { io::load_lora(in(folder, kFile), model); }

void save_merged(const std::string& folder, const std::string& base, const std::string& adapters) {
  const std::unique_ptr<Pretrained> model = from_pretrained(base);
  load_lora(adapters, *model);
  nn::merge_lora(*model);
  save_pretrained(folder, *model);
  if (io::is_gguf(base)) {
    const text::TokenizerFiles files = text::gguf_tokenizer_files(base);
    io::write_file(in(folder, "tokenizer.json"), std::string_view(files.tokenizer));
    io::write_file(in(folder, "tokenizer_config.json"), std::string_view(files.config));
    return;
  }
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja",
                           "generation_config.json"}) {
    std::error_code code;
    if (!std::filesystem::exists(in(base, name), code)) continue;
    std::filesystem::copy_file(in(base, name), in(folder, name), std::filesystem::copy_options::overwrite_existing,
                               code);
    if (code) throw IoError("save_merged: " + in(folder, name) + ": expected a file: " + code.message(), folder);
  }
}

}  // namespace samebytes::models
