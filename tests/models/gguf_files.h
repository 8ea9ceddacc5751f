// The GGUF file of a small folder: its tensors under llama.cpp's names, rows of queries and keys in its order, perhaps
// as Q8_0.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "models/folders.h"
#include "support/gguf.h"

namespace samebytes::testing::gguf {

// A value of Q8_0 is a scale, f16, times a number of 8 bits; here the scale is a power of two, which f16 has.
inline std::string quantised(const std::vector<float>& values) {
  std::string bytes;
  for (std::size_t i = 0; i < values.size(); i += 32) {
    bytes += raw<std::uint16_t>(0x2000);  // 2^-7
    for (std::size_t j = i; j < i + 32; ++j)
      bytes += raw(static_cast<std::int8_t>(std::clamp(std::lround(values[j] * 128.0f), -127L, 127L)));
  }
  return bytes;
}

inline std::vector<std::string> pairs_of_folder(const Json& config) {
  const std::string type = config["model_type"];
  const auto number = [&](const char* key) { return config[key].get<std::uint32_t>(); };
  std::vector<std::string> pairs{pair("general.architecture", type),
                                 pair(type + ".block_count", number("num_hidden_layers")),
                                 pair(type + ".context_length", number("max_position_embeddings")),
                                 pair(type + ".embedding_length", number("hidden_size")),
                                 pair(type + ".feed_forward_length", number("intermediate_size")),
                                 pair(type + ".attention.head_count", number("num_attention_heads"))};
  if (type == "bert") {
    pairs.push_back(pair(type + ".attention.layer_norm_epsilon", 1e-12f));
    return pairs;
  }
  pairs.push_back(pair(type + ".attention.head_count_kv", number("num_key_value_heads")));
  if (config.contains("head_dim")) pairs.push_back(pair(type + ".attention.key_length", number("head_dim")));
  pairs.push_back(pair(type + ".rope.freq_base", config.value("rope_theta", 10000.0f)));
  pairs.push_back(pair(type + ".attention.layer_norm_rms_epsilon", 1e-6f));
  return pairs;
}

inline std::string name_of(const std::string& tensor) {
  static const std::pair<const char*, const char*> names[] = {{"model.embed_tokens", "token_embd"},
                                                              {"model.norm", "output_norm"},
                                                              {"lm_head", "output"},
                                                              {"model.layers.", "blk."},
                                                              {"self_attn.q_proj", "attn_q"},
                                                              {"self_attn.k_proj", "attn_k"},
                                                              {"self_attn.v_proj", "attn_v"},
                                                              {"self_attn.o_proj", "attn_output"},
                                                              {"self_attn.q_norm", "attn_q_norm"},
                                                              {"self_attn.k_norm", "attn_k_norm"},
                                                              {"input_layernorm", "attn_norm"},
                                                              {"post_attention_layernorm", "ffn_norm"},
                                                              {"mlp.gate_proj", "ffn_gate"},
                                                              {"mlp.up_proj", "ffn_up"},
                                                              {"mlp.down_proj", "ffn_down"},
                                                              {"embeddings.word_embeddings", "token_embd"},
                                                              {"embeddings.position_embeddings", "position_embd"},
                                                              {"embeddings.token_type_embeddings", "token_types"},
                                                              {"embeddings.LayerNorm", "token_embd_norm"},
                                                              {"encoder.layer.", "blk."},
                                                              {"attention.self.query", "attn_q"},
                                                              {"attention.self.key", "attn_k"},
                                                              {"attention.self.value", "attn_v"},
                                                              {"attention.output.dense", "attn_output"},
                                                              {"attention.output.LayerNorm", "attn_output_norm"},
                                                              {"intermediate.dense", "ffn_up"},
                                                              {"output.dense", "ffn_down"},
                                                              {"output.LayerNorm", "layer_output_norm"}};
  std::string name = tensor;
  for (const auto& [ours, theirs] : names)
    if (const std::size_t at = name.find(ours); at != std::string::npos)
      name.replace(at, std::string(ours).size(), theirs);
  return name;
}

// `more`: further pairs of metadata, such as a tokenizer's.
inline std::string file_of_folder(const std::string& folder, bool is_quantised,
                                  const std::vector<std::string>& more = {}) {
  const Json config = config_in(folder);
  const std::string type = config["model_type"];
  std::vector<std::string> pairs = pairs_of_folder(config);
  pairs.insert(pairs.end(), more.begin(), more.end());
  const io::TensorFile file(folder + "/model.safetensors");
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const io::TensorInfo& info = file.tensors()[i];
    if (info.name.starts_with("pooler")) continue;  // llama.cpp has none
    const HostArray array = file.read(i);
    std::vector<float> values(array.as<float>().begin(), array.as<float>().end());
    const bool is_query = info.name.find("q_proj.weight") != std::string::npos;
    if (type == "llama" && (is_query || info.name.find("k_proj.weight") != std::string::npos)) {
      // Row i of the first half of a head becomes row 2 i, of the second half row 2 i + 1.
      const auto heads = config[is_query ? "num_attention_heads" : "num_key_value_heads"].get<std::size_t>();
      const auto rows = static_cast<std::size_t>(info.shape[0]) / heads,
                 columns = static_cast<std::size_t>(info.shape[1]);
      const std::vector<float> before = values;
      for (std::size_t head = 0; head < heads; ++head)
        for (std::size_t row = 0; row < rows; ++row) {
          const std::size_t place = row % (rows / 2) * 2 + row / (rows / 2);
          std::copy_n(before.begin() + static_cast<std::ptrdiff_t>((head * rows + row) * columns), columns,
                      values.begin() + static_cast<std::ptrdiff_t>((head * rows + place) * columns));
        }
    }
    Tensor tensor{name_of(info.name),
                  {},
                  kTypeF32,
                  std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float))};
    for (int axis = info.shape.rank(); axis-- > 0;)
      tensor.sizes.push_back(static_cast<std::uint64_t>(info.shape[axis]));
    if (is_quantised && info.shape.rank() == 2 && info.shape[1] % 32 == 0) {
      tensor.type = kTypeQ8;
      tensor.bytes = quantised(values);
    }
    tensors.push_back(std::move(tensor));
  }
  return file_of(pairs, tensors);
}

}  // namespace samebytes::testing::gguf
