#include "samebytes/io/gguf.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include "core/io_error.h"

namespace samebytes::io {
namespace {

constexpr std::uint64_t kDefaultAlignment = 32;
constexpr int kMostAxes = 4;
constexpr std::uint64_t kShownValues = 3;  // of an array
constexpr std::size_t kShownText = 200;    // of a value: templates of chats are long
constexpr std::uint64_t kShortSkip = 4096;
constexpr std::uint64_t kSmallestPair = 13;    // bytes: an empty key, a type, a value of one byte
constexpr std::uint64_t kSmallestTensor = 24;  // bytes: an empty name, no axis, a type, an offset

enum Kind : std::uint32_t { u8_, i8_, u16_, i16_, u32_, i32_, f32_, bool__, text_, array_, u64_, i64_, f64_, kinds };
constexpr std::uint64_t kWidths[kinds] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};  // at least

// A type of ggml: values of a block, and its bytes.
struct BlockType {
  std::uint32_t number;
  const char* name;
  std::uint64_t values, bytes;
};
constexpr BlockType kBlocks[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
    {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2}};

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(path, std::ios::binary | std::ios::ate) {
    if (!file_) detail::throw_io("gguf", path, -1, "a readable file", "none");
    size_ = static_cast<std::uint64_t>(file_.tellg());
    file_.seekg(0);
  }

  GgufHeader read() {
    GgufHeader header;
    header.version = version();
    const std::uint64_t tensors = count("tensors", kSmallestTensor);
    const std::uint64_t pairs = count("key-value pairs", kSmallestPair);
    std::uint64_t alignment = kDefaultAlignment;
    for (std::uint64_t i = 0; i < pairs; ++i) {
      std::string key = text();
      const auto kind = number<std::uint32_t>();
      std::string value = this->value(kind);
      if (key == "general.alignment") {
        alignment = std::strtoull(value.c_str(), nullptr, 10);
        if (alignment == 0 || alignment > (1U << 20)) fail("an alignment above 0", value);
      }
      header.metadata.emplace_back(std::move(key), std::move(value));
    }
    for (std::uint64_t i = 0; i < tensors; ++i) header.tensors.push_back(tensor());
    const std::uint64_t begin = (at_ + alignment - 1) / alignment * alignment;
    for (GgufTensor& tensor : header.tensors) place(tensor, begin);
    return header;
  }

  std::map<std::string, GgufValue> read_values(const std::string& prefix) {
    version();
    count("tensors", kSmallestTensor);
    std::map<std::string, GgufValue> values;
    for (std::uint64_t i = 0, pairs = count("key-value pairs", kSmallestPair); i < pairs; ++i) {
      const std::string key = text();
      const auto kind = number<std::uint32_t>();
      if (key.starts_with(prefix))
        values.insert_or_assign(key, whole(kind));
      else
        value(kind);
    }
    return values;
  }

 private:
  [[noreturn]] void fail(const std::string& expected, const std::string& found) const {
    detail::throw_io("gguf", path_, static_cast<std::int64_t>(at_), expected, found);
  }
  std::uint64_t left() const { return size_ - at_; }
  std::uint32_t version() {
    if (bytes(4) != "GGUF") fail("the word GGUF", "another beginning");
    const auto version = number<std::uint32_t>();
    if (version != 2 && version != 3) fail("version 2 or 3", std::to_string(version));
    return version;
  }

  // Nothing is allocated that the file does not have.
  std::string bytes(std::uint64_t length) {
    if (length > left()) fail(std::to_string(length) + " bytes", "the end of the file after " + std::to_string(left()));
    std::string result(length, '\0');
    if (!file_.read(result.data(), static_cast<std::streamsize>(length))) fail("a readable file", "an error");
    at_ += length;
    return result;
  }
  void skip(std::uint64_t length) {
    if (length > left()) fail(std::to_string(length) + " bytes", "the end of the file after " + std::to_string(left()));
    at_ += length;
    if (length < kShortSkip)  // stays in the stream's buffer
      file_.ignore(static_cast<std::streamsize>(length));
    else
      file_.seekg(static_cast<std::streamoff>(at_));
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }
  std::uint64_t count(const char* what, std::uint64_t smallest) {
    const auto value = number<std::uint64_t>();
    if (value > left() / smallest)
      fail("at most " + std::to_string(left() / smallest) + " " + what + ", which fit into the file",
           std::to_string(value));
    return value;
  }
  std::string text() { return bytes(number<std::uint64_t>()); }

  std::string value(std::uint32_t kind) {
    switch (kind) {
      case u8_: return std::to_string(number<std::uint8_t>());
      case i8_: return std::to_string(number<std::int8_t>());
      case u16_: return std::to_string(number<std::uint16_t>());
      case i16_: return std::to_string(number<std::int16_t>());
      case u32_: return std::to_string(number<std::uint32_t>());
      case i32_: return std::to_string(number<std::int32_t>());
      case f32_: return real(static_cast<double>(number<float>()));
      case bool__: return number<std::uint8_t>() != 0 ? "true" : "false";
      case text_: return shortened(text());
      case array_: return list();
      case u64_: return std::to_string(number<std::uint64_t>());
      case i64_: return std::to_string(number<std::int64_t>());
      case f64_: return real(number<double>());
      default: fail("a type from 0 to 12", std::to_string(kind));
    }
  }

  std::string list() {
    const auto kind = number<std::uint32_t>();
    if (kind >= kinds || kind == array_) fail("an array of numbers or texts", "type " + std::to_string(kind));
    const std::uint64_t length = count("values", kWidths[kind]);
    std::string result = "[";
    for (std::uint64_t i = 0; i < length; ++i) {
      if (i < kShownValues)
        result += (i > 0 ? ", " : "") + value(kind);
      else if (kind == text_)
        skip(number<std::uint64_t>());
      else
        skip((length - i) * kWidths[kind]), i = length;
    }
    return result + (length > kShownValues ? ", ...] of " + std::to_string(length) : "]");
  }

  double real_of(std::uint32_t kind) {
    switch (kind) {
      case u8_:
      case bool__: return number<std::uint8_t>();
      case i8_: return number<std::int8_t>();
      case u16_: return number<std::uint16_t>();
      case i16_: return number<std::int16_t>();
      case u32_: return number<std::uint32_t>();
      case i32_: return number<std::int32_t>();
      case f32_: return static_cast<double>(number<float>());
      case u64_: return static_cast<double>(number<std::uint64_t>());
      case i64_: return static_cast<double>(number<std::int64_t>());
      case f64_: return number<double>();
      default: fail("a type from 0 to 12", std::to_string(kind));
    }
  }

  GgufValue whole(std::uint32_t kind) {
    GgufValue value;
    std::uint64_t length = 1;
    if (kind == array_) {
      kind = number<std::uint32_t>();
      if (kind >= kinds || kind == array_) fail("an array of numbers or texts", "type " + std::to_string(kind));
      length = count("values", kWidths[kind]);
    }
    if (kind == text_) {
      value.texts.reserve(length);
      for (std::uint64_t i = 0; i < length; ++i) value.texts.push_back(text());
    } else {
      value.numbers.reserve(length);
      for (std::uint64_t i = 0; i < length; ++i) value.numbers.push_back(real_of(kind));
    }
    return value;
  }

  static std::string real(double value) {
    std::array<char, 32> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%.6g", value);
    return buffer.data();
  }
  static std::string shortened(const std::string& text) {
    return text.size() <= kShownText ? text : text.substr(0, kShownText) + "...";
  }

  GgufTensor tensor() {
    GgufTensor result{.name = text(), .type = {}, .sizes = {}};
    const auto axes = number<std::uint32_t>();
    if (axes > kMostAxes) fail("at most 4 axes of '" + result.name + "'", std::to_string(axes));
    for (std::uint32_t i = 0; i < axes; ++i) {
      const auto size = number<std::uint64_t>();
      if (size > std::uint64_t{1} << 56) fail("sizes that a file can have", std::to_string(size));
      result.sizes.insert(result.sizes.begin(), static_cast<std::int64_t>(size));
    }
    const auto type = number<std::uint32_t>();
    result.type = "type " + std::to_string(type);
    for (const BlockType& block : kBlocks) {
      if (block.number != type) continue;
      result.type = block.name;
      const std::uint64_t row = axes == 0 ? 1 : static_cast<std::uint64_t>(result.sizes.back());
      if (row % block.values != 0)
        fail("rows of '" + result.name + "' in whole blocks of " + std::to_string(block.values),
             std::to_string(row) + " values");
      const std::uint64_t all = detail::bytes_of_sizes(result.sizes, block.bytes);
      result.bytes = all / block.values;
    }
    result.offset = number<std::uint64_t>();
    return result;
  }

  void place(GgufTensor& tensor, std::uint64_t begin) const {
    if (begin > size_ || tensor.offset > size_ - begin || tensor.bytes > size_ - begin - tensor.offset)
      fail("the " + std::to_string(tensor.bytes) + " bytes of '" + tensor.name + "' inside the file of " +
               std::to_string(size_),
           "offset " + std::to_string(tensor.offset) + " after " + std::to_string(begin));
    tensor.offset += begin;
  }

  std::string path_;
  std::ifstream file_;
  std::uint64_t size_ = 0, at_ = 0;
};

}  // namespace

GgufHeader read_gguf_header(const std::string& path) { return Reader(path).read(); }

std::map<std::string, GgufValue> read_gguf_values(const std::string& path, const std::string& prefix) {
  return Reader(path).read_values(prefix);
}

bool is_gguf(const std::string& path) {
  std::array<char, 4> begin{};
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) return false;
  std::ifstream file(path, std::ios::binary);
  return file.read(begin.data(), begin.size()) && std::string_view(begin.data(), begin.size()) == "GGUF";
}

}  // namespace samebytes::io
