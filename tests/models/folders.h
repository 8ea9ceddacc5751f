// Small Hugging Face folders that tests write themselves: a configuration, random weights saved by save_pretrained, and
// changes of both.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "samebytes/models/pretrained.h"
#include "samebytes/samebytes.h"
#include "support/files.h"

namespace samebytes::testing {

using Json = nlohmann::json;

inline Json decoder_config(const std::string& type, const std::string& architecture) {
  return {{"architectures", {architecture}},
          {"model_type", type},
          {"vocab_size", 29},
          {"hidden_size", 16},
          {"intermediate_size", 24},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"max_position_embeddings", 64},
          {"rms_norm_eps", 1e-6},
          {"initializer_range", 0.3},
          {"tie_word_embeddings", false}};
}

inline Json encoder_config(const std::string& type, const std::string& architecture) {
  return {{"architectures", {architecture}},
          {"model_type", type},
          {"vocab_size", 29},
          {"hidden_size", 16},
          {"intermediate_size", 24},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"max_position_embeddings", 32},
          {"type_vocab_size", 2},
          {"pad_token_id", 1},
          {"num_labels", 3},
          {"initializer_range", 0.3}};
}

inline std::unique_ptr<models::Pretrained> fresh(const Json& config) {
  return models::from_config(models::Config::parse("config.json", config.dump()));
}

// A folder with the files of a new model of this configuration.
inline void write_folder(const std::string& folder, const Json& config) {
  models::save_pretrained(folder, *fresh(config));
}

inline Json config_in(const std::string& folder) { return Json::parse(get(folder + "/config.json")); }
inline void put_config(const std::string& folder, const Json& config) { put(folder + "/config.json", config.dump()); }

inline Array ids_of(std::vector<std::int32_t> ids, std::int64_t batch = 1) {
  const auto count = static_cast<std::int64_t>(ids.size());
  return array(ids, {batch, count / batch});
}

inline double difference(const Array& a, const Array& b) { return max(abs(a - b)).value(); }

}  // namespace samebytes::testing
