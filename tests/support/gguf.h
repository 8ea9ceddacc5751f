// GGUF files of tests, byte by byte: pairs of metadata and tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace samebytes::testing::gguf {

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
inline std::string word(const std::string& value) { return raw<std::uint64_t>(value.size()) + value; }

enum Kind : std::uint32_t { kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kText = 8, kArray = 9 };
constexpr std::uint32_t kTypeF32 = 0, kTypeQ8 = 8;  // of tensors

inline std::string pair(const std::string& key, std::uint32_t value) { return word(key) + raw(kU32) + raw(value); }
inline std::string pair(const std::string& key, float value) { return word(key) + raw(kF32) + raw(value); }
inline std::string pair(const std::string& key, bool value) {
  return word(key) + raw(kBool) + raw(static_cast<std::uint8_t>(value));
}
inline std::string pair(const std::string& key, const std::string& value) {
  return word(key) + raw(kText) + word(value);
}
inline std::string pair(const std::string& key, const char* value) { return pair(key, std::string(value)); }
inline std::string pair(const std::string& key, const std::vector<std::string>& values) {
  std::string text = word(key) + raw(kArray) + raw(kText) + raw<std::uint64_t>(values.size());
  for (const std::string& value : values) text += word(value);
  return text;
}
inline std::string pair(const std::string& key, const std::vector<float>& values) {
  std::string text = word(key) + raw(kArray) + raw(kF32) + raw<std::uint64_t>(values.size());
  for (const float value : values) text += raw(value);
  return text;
}
inline std::string pair(const std::string& key, const std::vector<std::int32_t>& values) {
  std::string text = word(key) + raw(kArray) + raw(kI32) + raw<std::uint64_t>(values.size());
  for (const std::int32_t value : values) text += raw(value);
  return text;
}

struct Tensor {
  std::string name;
  std::vector<std::uint64_t> sizes;  // the fastest axis first
  std::uint32_t type;
  std::string bytes;
};

inline std::string file_of(const std::vector<std::string>& pairs, const std::vector<Tensor>& tensors = {}) {
  std::string file =
      "GGUF" + raw<std::uint32_t>(3) + raw<std::uint64_t>(tensors.size()) + raw<std::uint64_t>(pairs.size());
  for (const std::string& one : pairs) file += one;
  std::string values;
  for (const Tensor& tensor : tensors) {
    file += word(tensor.name) + raw<std::uint32_t>(static_cast<std::uint32_t>(tensor.sizes.size()));
    for (const std::uint64_t size : tensor.sizes) file += raw(size);
    file += raw(tensor.type) + raw<std::uint64_t>(values.size());
    values += tensor.bytes;
    values.resize((values.size() + 31) / 32 * 32);
  }
  file.resize((file.size() + 31) / 32 * 32);
  return file + values;
}

}  // namespace samebytes::testing::gguf
