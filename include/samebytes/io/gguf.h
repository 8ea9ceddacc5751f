// The header of a GGUF file (github.com/ggerganov/ggml, docs/gguf.md), in which quantised language models are
// distributed: its key-value pairs and its tensors. The values of tensors are not read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace samebytes::io {

struct GgufTensor {
  std::string name;
  std::string type;                 // "F32", "Q4_K"; "type 99" if it is not known
  std::vector<std::int64_t> sizes;  // rows first, as NumPy has them; the file has the fastest axis first
  std::uint64_t offset = 0;         // from the beginning of the file
  std::uint64_t bytes = 0;          // 0 for an unknown type
};

struct GgufHeader {
  std::uint32_t version = 0;
  // In the file's order, values as text; of an array the first values and the count: "[1, 2, 3, ...] of 32000".
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<GgufTensor> tensors;
};

// Reads versions 2 and 3, little-endian. Throws IoError, with the byte where it stopped, for a missing, truncated or
// damaged file, another version, and tensors that reach beyond the end of the file.
GgufHeader read_gguf_header(const std::string& path);

// A whole value of the metadata: the texts of a text or of a list of texts, else numbers; a flag is 0 or 1.
struct GgufValue {
  std::vector<std::string> texts;
  std::vector<double> numbers;
};
// The values whose keys begin with `prefix`. Throws IoError as read_gguf_header() does.
std::map<std::string, GgufValue> read_gguf_values(const std::string& path, const std::string& prefix);

// Whether the file begins as a GGUF file does; false for what cannot be read.
bool is_gguf(const std::string& path);

}  // namespace samebytes::io
