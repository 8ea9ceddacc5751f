// A state as a safetensors file. Its metadata: "format", "description" (JSON), and "checksums": the CRC-32 of each
// tensor with its name, dtype and shape, and under "" that of the description.
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "core/json.h"
#include "samebytes/error.h"
#include "samebytes/run_state.h"
#include "train/run_parts.h"

namespace samebytes {
namespace detail {
namespace {

constexpr const char* kRunFormat = "samebytes run 1";
constexpr std::size_t kReadBytes = std::size_t{1} << 18;

[[noreturn]] void damaged(const std::string& path, const std::string& expected, const std::string& found) {
  throw IoError("run state: " + path + ": expected " + expected + ", found " + found, path);
}

std::uint32_t extended(std::uint32_t sum, std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(crc32_z(sum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::uint32_t extended(std::uint32_t sum, const std::string& text) {
  return extended(sum, std::as_bytes(std::span(text.data(), text.size())));
}

// The sum of what a tensor is, before its bytes.
std::uint32_t begun(const std::string& name, Dtype dtype, const Shape& shape) {
  return extended(0, name + " " + std::string(name_of(dtype)) + " " + shape.to_string());
}

std::string word_of(const io::TensorFile& file, const std::string& key) {
  for (const auto& [name, value] : file.metadata())
    if (name == key) return value;
  damaged(file.path(), "a state of a run, with \"" + key + "\" in its metadata", "a file without it");
}

// The values once through, in the file's order, without holding a tensor in memory.
class ValueStream {
 public:
  explicit ValueStream(const io::TensorFile& file)
      : path_(file.path()), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file_ < 0) damaged(path_, "a readable file", std::strerror(errno));
    std::size_t bytes = 0;
    for (const io::TensorInfo& tensor : file.tensors()) bytes += tensor.bytes();
    const off_t end = ::lseek(file_, 0, SEEK_END);
    if (end < static_cast<off_t>(bytes)) damaged(path_, std::to_string(bytes) + " bytes of values", "fewer");
    ::lseek(file_, end - static_cast<off_t>(bytes), SEEK_SET);
  }
  ~ValueStream() {
    if (file_ >= 0) ::close(file_);
  }
  ValueStream(const ValueStream&) = delete;
  ValueStream& operator=(const ValueStream&) = delete;

  std::uint32_t sum(const io::TensorInfo& tensor) {
    std::uint32_t result = begun(tensor.name, tensor.dtype, tensor.shape);
    for (std::size_t left = tensor.bytes(); left > 0;) {
      const ssize_t got = ::read(file_, chunk_.data(), std::min(left, chunk_.size()));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) damaged(path_, "the bytes of '" + tensor.name + "'", got < 0 ? std::strerror(errno) : "the end");
      result = extended(result, std::span(chunk_).first(static_cast<std::size_t>(got)));
      left -= static_cast<std::size_t>(got);
    }
    return result;
  }

 private:
  std::string path_;
  int file_;
  std::vector<std::byte> chunk_ = std::vector<std::byte>(kReadBytes);
};

}  // namespace

RunFile::RunFile(const std::string& path) : file_(path) {
  if (const std::string format = word_of(file_, "format"); format != kRunFormat)
    damaged(path, "the format \"" + std::string(kRunFormat) + "\"", "\"" + format + "\"");
  const std::string text = word_of(file_, "description");
  const auto sums = parse_json<RunJson>("run state", path, word_of(file_, "checksums"));
  const auto check = [&](const std::string& name, const std::string& what, std::uint32_t sum) {
    if (!sums.is_object() || !sums.contains(name) || sums[name] != sum)
      damaged(path, what + " as its checksum says", "other bytes: the file is damaged");
  };
  check("", "a description", extended(0, text));
  if (sums.size() != file_.tensors().size() + 1)
    damaged(path, std::to_string(sums.size() - 1) + " tensors", std::to_string(file_.tensors().size()));
  ValueStream values(file_);
  for (const io::TensorInfo& tensor : file_.tensors()) check(tensor.name, "'" + tensor.name + "'", values.sum(tensor));
  description_ = parse_json<RunJson>("run state", path, text);
  const auto has = [&](const char* key, bool (RunJson::*is_type)() const noexcept) {
    return description_.contains(key) && (description_[key].*is_type)();
  };
  if (!description_.is_object() || !has("device", &RunJson::is_string) || !has("tuning", &RunJson::is_string) ||
      !has("random_counter", &RunJson::is_number_unsigned) || !has("expect", &RunJson::is_object) ||
      !has("parts", &RunJson::is_object))
    damaged(path, "a description with device, tuning, random_counter, expect and parts",
            to_line(description_).substr(0, 60));
}

void write_run_file(const std::string& path, std::span<const io::TensorView> tensors, const std::string& description) {
  RunJson sums = RunJson::object();
  sums[""] = extended(0, description);
  for (const io::TensorView& tensor : tensors)
    sums[tensor.name] = extended(begun(tensor.name, tensor.dtype, tensor.shape), tensor.bytes);
  io::save_tensors(path, tensors,
                   {{"format", kRunFormat}, {"description", description}, {"checksums", to_text("run state", sums)}},
                   io::Access::owner);
}

}  // namespace detail

void check_run_file(const std::string& path) { const detail::RunFile file(path); }

std::optional<std::string> run_text(const std::string& path, const std::string& name) {
  const detail::RunFile file(path);
  const detail::RunJson& parts = file.description()["parts"];
  if (!parts.contains(name) || !parts[name].contains(detail::kText)) return std::nullopt;
  return detail::reading_json("run state", path, [&] { return parts[name][detail::kText].get<std::string>(); });
}

}  // namespace samebytes
