// The tokenizer of a GGUF file's metadata (tokenizer.ggml.*) as a tokenizer.json and a tokenizer_config.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace samebytes::detail {

struct GgufTokenizer {
  nlohmann::json tokenizer;
  nlohmann::ordered_json config;  // texts of special tokens, chat_template
};

// Throws IoError for a file without a tokenizer, for a kind that there is not here, and for lists that do not agree.
GgufTokenizer read_gguf_tokenizer(const std::string& path);
nlohmann::ordered_json read_gguf_tokenizer_config(const std::string& path);

}  // namespace samebytes::detail
