#include <filesystem>
#include <iterator>

#include "fuzz/target.h"
#include "samebytes/engine.h"
#include "samebytes/error.h"
#include "samebytes/io/safetensors.h"
#include "samebytes/models/pretrained.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

constexpr const char* kConfigs[] = {
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 5, "hidden_size": 4,
"intermediate_size": 6, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
"max_position_embeddings": 16, "rms_norm_eps": 1e-6, "tie_word_embeddings": false, "rope_theta": 1e4,
"rope_scaling": {"type": "llama3", "factor": 2, "low_freq_factor": 1, "high_freq_factor": 4,
"original_max_position_embeddings": 8}})",
    R"({"architectures": ["BertForSequenceClassification"], "model_type": "bert", "vocab_size": 5, "hidden_size": 4,
"intermediate_size": 6, "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 8,
"type_vocab_size": 2, "pad_token_id": 1, "num_labels": 3})"};

// Folders with these models, whose weights fit.
struct Folders {
  Engine engine;
  const testing::TemporaryFolder all;
  std::string of(std::size_t model) const { return all / std::to_string(model); }

  Folders() {
    const EngineScope scope(engine);
    for (std::size_t i = 0; i < std::size(kConfigs); ++i) {
      std::filesystem::create_directories(of(i));
      models::save_pretrained(of(i), *models::from_config(models::Config::parse("config.json", kConfigs[i])));
    }
  }
};

Folders& folders() {
  static Folders& made = *new Folders;
  return made;
}

// As the configuration of each model, else as the index of the first one's weights.
const Added added({
    .name = "model_folder",
    .file = "x.json",
    .make =
        [](const std::string& folder) {
          for (std::size_t i = 0; i < std::size(kConfigs); ++i)
            testing::put(folder + "/config" + std::to_string(i), kConfigs[i]);
          const io::TensorFile weights(folders().of(0) + "/model.safetensors");
          std::string map;
          for (const io::TensorInfo& tensor : weights.tensors())
            map += (map.empty() ? "\"" : ", \"") + tensor.name + "\": \"part.safetensors\"";
          testing::put(folder + "/index", "{\"metadata\": {\"total_size\": 9}, \"weight_map\": {" + map + "}}");
        },
    .read =
        [](const std::string& path) {
          const EngineScope scope(folders().engine);
          const testing::TemporaryFolder folder;
          const std::string file = testing::get(path), config = folder / "config.json";
          const std::string weights = folder / "model.safetensors";
          for (std::size_t i = 0; i < std::size(kConfigs); ++i) {
            testing::put(config, file);
            std::filesystem::create_hard_link(folders().of(i) + "/model.safetensors", weights);
            try {
              models::from_pretrained(folder.string());
              return;
            } catch (const Error&) {
            }
            std::filesystem::remove(weights);
          }
          testing::put(config, kConfigs[0]);
          testing::put(folder / "model.safetensors.index.json", file);
          std::filesystem::create_hard_link(folders().of(0) + "/model.safetensors", folder / "part.safetensors");
          models::from_pretrained(folder.string());
        },
    .words = {"\"model_type\"", "\"architectures\"", "\"rope_scaling\"", "\"weight_map\"", "\"head_dim\"", "\"gpt2\"",
              "\"yarn\"", "\"longrope\"", "\"sliding_window\"", "\"layer_types\"", "../", "134217728", "1e308", "-1",
              "null", "[]", "{}", "true"},
    .growth = 2000,
});

}  // namespace
}  // namespace samebytes::fuzz
