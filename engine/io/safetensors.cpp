#include "samebytes/io/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/io_error.h"
#include "core/json.h"
#include "io/mapped_file.h"
#include "samebytes/io/files.h"

namespace samebytes::detail {

// A dtype of the format and the dtype it becomes.
struct StoredDtype {
  const char* name;
  std::size_t width;
  Dtype dtype;
};

struct StoredTensor {
  const StoredDtype* stored = nullptr;
  std::uint64_t begin = 0;  // in the file
};

}  // namespace samebytes::detail

namespace samebytes::io {
namespace {

using detail::StoredDtype;

static_assert(std::endian::native == std::endian::little, "values are stored as this machine has them");

using Json = nlohmann::ordered_json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 62;
constexpr const char* kMetadataKey = "__metadata__";

constexpr StoredDtype kStored[] = {{"F64", 8, f64}, {"F32", 4, f32}, {"F16", 2, f16},    {"BF16", 2, bf16},
                                   {"I32", 4, i32}, {"U8", 1, u8},   {"BOOL", 1, bool_}, {"I64", 8, i64},
                                   {"I16", 2, i32}, {"U16", 2, i32}, {"I8", 1, i32}};

const char* stored_name(Dtype dtype) {
  for (const StoredDtype& stored : kStored)
    if (stored.dtype == dtype) return stored.name;
  return "";
}

}  // namespace

void save_tensors(const std::string& path, std::span<const TensorView> tensors, const Metadata& metadata,
                  Access access) {
  std::vector<const TensorView*> order;
  std::set<std::string> names;
  for (const TensorView& tensor : tensors) {
    const std::size_t need = static_cast<std::size_t>(tensor.shape.size()) * bytes_of(tensor.dtype);
    if (tensor.bytes.size() != need)
      throw ArgumentError("save_tensors: '" + tensor.name + "' " + tensor.shape.to_string() + " of " +
                          std::string(name_of(tensor.dtype)) + " has " + std::to_string(need) + " bytes, got " +
                          std::to_string(tensor.bytes.size()));
    if (tensor.name == kMetadataKey || !names.insert(tensor.name).second)
      throw ArgumentError("save_tensors: names must be different and not __metadata__, got '" + tensor.name + "'");
    order.push_back(&tensor);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const TensorView* a, const TensorView* b) { return bytes_of(a->dtype) > bytes_of(b->dtype); });

  Json header = Json::object();
  for (const auto& [key, value] : metadata) header[kMetadataKey][key] = value;
  std::uint64_t offset = 0;
  for (const TensorView* tensor : order) {
    Json& entry = header[tensor->name];
    entry["dtype"] = stored_name(tensor->dtype);
    entry["shape"] = std::vector<std::int64_t>(tensor->shape.begin(), tensor->shape.end());
    entry["data_offsets"] = {offset, offset + tensor->bytes.size()};
    offset += tensor->bytes.size();
  }
  std::string text = detail::to_text("save_tensors", header);
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  const std::uint64_t length = text.size();
  AtomicFile file(path, access);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  for (const TensorView* tensor : order) file.write(tensor->bytes);
  file.commit();
}

struct TensorFile::State {
  std::string path;
  int file = -1;
  std::uint64_t size = 0, values = 0;  // bytes of the file; offset of the values
  std::vector<TensorInfo> infos;
  std::vector<detail::StoredTensor> entries;
  std::map<std::string, std::size_t> names;
  Metadata metadata;
  std::shared_ptr<MappedFile> mapped;  // at the first use of map()

  ~State() {
    if (file >= 0) ::close(file);
  }

  [[noreturn]] void fail(std::uint64_t offset, const std::string& expected, const std::string& found) const {
    detail::throw_io("safetensors", path, static_cast<std::int64_t>(offset), expected, found);
  }

  void read_at(std::uint64_t offset, std::span<std::byte> dst) const {
    while (!dst.empty()) {
      const ssize_t got = ::pread(file, dst.data(), dst.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(offset, "readable bytes", std::strerror(errno));
      if (got == 0) fail(offset, std::to_string(dst.size()) + " more bytes", "the end of the file");
      offset += static_cast<std::uint64_t>(got);
      dst = dst.subspan(static_cast<std::size_t>(got));
    }
  }

  void open() {
    file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) throw IoError("safetensors: " + path + ": expected a readable file: " + std::strerror(errno), path);
    struct stat info {};
    if (::fstat(file, &info) == 0 && S_ISDIR(info.st_mode))
      throw IoError("safetensors: " + path + ": expected a file, found a folder", path);
    size = static_cast<std::uint64_t>(info.st_size);
    if (size < kLengthBytes) fail(size, "the header's length as 8 bytes", "the end of the file");
    std::uint64_t length = 0;
    read_at(0, std::as_writable_bytes(std::span(&length, 1)));
    if (length > kMaxHeader) fail(0, "a header of at most 100000000 bytes", std::to_string(length));
    if (length > size - kLengthBytes)
      fail(size, "a header of " + std::to_string(length) + " bytes", "the end of the file");
    values = kLengthBytes + length;
    std::string text(length, '\0');
    read_at(kLengthBytes, std::as_writable_bytes(std::span(text.data(), text.size())));
    parse(text);
  }

  void parse(const std::string& text) {
    // nlohmann keeps the last of equal keys; the format forbids them, so the parser checks for them.
    std::set<std::string> keys;
    const auto header = detail::parse_json<Json>("safetensors", path, text, static_cast<std::int64_t>(kLengthBytes),
                                                 [&](const std::string& key, int level) {
                                                   if (level == 1 && !keys.insert(key).second)
                                                     fail(kLengthBytes, "different names", "'" + key + "' twice");
                                                 });
    if (!header.is_object()) fail(kLengthBytes, "a JSON object", header.type_name());

    struct Found {
      TensorInfo info;
      detail::StoredTensor entry;
      std::uint64_t end;
    };
    std::vector<Found> found;
    for (const auto& [name, value] : header.items()) {
      if (name == kMetadataKey) {
        if (!value.is_object()) fail(kLengthBytes, "__metadata__ as an object of strings", value.type_name());
        for (const auto& [key, word] : value.items()) {
          if (!word.is_string()) fail(kLengthBytes, "__metadata__ as an object of strings", word.type_name());
          metadata.emplace_back(key, word.get<std::string>());
        }
        std::sort(metadata.begin(), metadata.end());
        continue;
      }
      found.push_back(Found{});
      Found& tensor = found.back();
      tensor.info.name = name;
      parse_entry(name, value, tensor.info, tensor.entry, tensor.end);
    }
    std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
      return std::pair(a.entry.begin, a.end) < std::pair(b.entry.begin, b.end);
    });
    std::uint64_t place = values;
    for (Found& tensor : found) {
      if (tensor.entry.begin != place)
        fail(place, "'" + tensor.info.name + "' to begin where the tensor before it ends",
             "data_offsets from " + std::to_string(tensor.entry.begin - values));
      place = tensor.end;
      names.emplace(tensor.info.name, infos.size());
      infos.push_back(std::move(tensor.info));
      entries.push_back(tensor.entry);
    }
    if (place != size)
      fail(std::min(place, size), std::to_string(place - values) + " bytes of values", std::to_string(size - values));
  }

  void parse_entry(const std::string& name, const Json& value, TensorInfo& info, detail::StoredTensor& entry,
                   std::uint64_t& end) const {
    const auto wrong = [&](const std::string& expected, const std::string& what) {
      fail(kLengthBytes, "'" + name + "' with " + expected, what);
    };
    if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets"))
      wrong("dtype, shape and data_offsets", detail::to_line(value).substr(0, 60));
    const Json &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
    const auto is_sizes = [](const Json& list) {
      return list.is_array() &&
             std::all_of(list.begin(), list.end(), [](const Json& n) { return n.is_number_unsigned(); });
    };
    if (!dtype.is_string() || !is_sizes(shape) || !is_sizes(offsets) || offsets.size() != 2)
      wrong("a dtype, sizes and two offsets", detail::to_line(value).substr(0, 60));
    for (const StoredDtype& stored : kStored)
      if (dtype.get<std::string>() == stored.name) entry.stored = &stored;
    if (entry.stored == nullptr)
      wrong("a dtype F64, F32, F16, BF16, I32, U8, BOOL, I64, I16, U16 or I8", dtype.get<std::string>());
    info.dtype = entry.stored->dtype;
    if (shape.size() > Shape::kMaxRank) wrong("at most 8 axes", std::to_string(shape.size()));
    std::vector<std::int64_t> sizes;
    for (const Json& item : shape)
      sizes.push_back(static_cast<std::int64_t>(std::min(item.get<std::uint64_t>(), kLargestSize)));
    const std::uint64_t need = detail::bytes_of_sizes(sizes, entry.stored->width);
    const auto first = offsets[0].get<std::uint64_t>(), last = offsets[1].get<std::uint64_t>();
    if (first > last || last - first != need || last > kLargestSize)
      wrong("data_offsets " + std::to_string(need) + " bytes apart for shape " + shape.dump(), offsets.dump());
    info.shape = detail::shape_of_sizes("safetensors", path, kLengthBytes, sizes);
    entry.begin = values + first;
    end = values + last;
  }
};

TensorFile::TensorFile(const std::string& path) : state_(std::make_unique<State>()) {
  state_->path = path;
  state_->open();
}
TensorFile::~TensorFile() = default;
TensorFile::TensorFile(TensorFile&&) noexcept = default;
TensorFile& TensorFile::operator=(TensorFile&&) noexcept = default;

const std::string& TensorFile::path() const { return state_->path; }
const std::vector<TensorInfo>& TensorFile::tensors() const { return state_->infos; }
const Metadata& TensorFile::metadata() const { return state_->metadata; }

std::optional<std::size_t> TensorFile::find(const std::string& name) const {
  const auto found = state_->names.find(name);
  return found == state_->names.end() ? std::nullopt : std::optional(found->second);
}

void TensorFile::read(std::size_t index, std::span<std::byte> dst) const {
  const TensorInfo& info = state_->infos.at(index);
  const detail::StoredTensor& entry = state_->entries[index];
  if (dst.size() != info.bytes())
    throw ArgumentError("safetensors: '" + info.name + "' has " + std::to_string(info.bytes()) +
                        " bytes, got memory for " + std::to_string(dst.size()));
  if (entry.stored->width == bytes_of(info.dtype)) {
    state_->read_at(entry.begin, dst);
    return;
  }
  const std::size_t width = entry.stored->width, count = dst.size() / sizeof(std::int32_t);
  std::vector<std::byte> narrow(count * width);
  state_->read_at(entry.begin, narrow);
  const bool is_signed = entry.stored->name[0] == 'I';
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, narrow.data() + i * width, width);
    const unsigned unused = 64 - 8 * static_cast<unsigned>(width);
    const auto value =
        is_signed ? static_cast<std::int64_t>(bits << unused) >> unused : static_cast<std::int64_t>(bits);
    const auto result = static_cast<std::int32_t>(value);
    std::memcpy(dst.data() + i * sizeof result, &result, sizeof result);
  }
}

Array TensorFile::map(std::size_t index, Adoption* verdict) const {
  const TensorInfo& info = state_->infos.at(index);
  const detail::StoredTensor& entry = state_->entries[index];
  if (info.bytes() == 0) throw ArgumentError("safetensors: '" + info.name + "' has no elements to map");
  if (entry.stored->width != bytes_of(info.dtype))
    throw ArgumentError("safetensors: '" + info.name + "' of " + entry.stored->name + " cannot be mapped; read() it");
  if (!state_->mapped) {
    state_->mapped = MappedFile::map(state_->file, static_cast<std::size_t>(state_->size));
    if (!state_->mapped) state_->fail(0, "a file that can be mapped", std::strerror(errno));
  }
  std::byte* const bytes = state_->mapped->data() + entry.begin;
  if (entry.begin % entry.stored->width == 0)
    return adopt(
        bytes, info.shape, info.dtype, [kept = state_->mapped] {}, verdict);
  Array copy = empty(info.shape, info.dtype);
  read(index, {static_cast<std::byte*>(detail::Borrow(copy, true, __FILE__, __LINE__).data()), info.bytes()});
  if (verdict != nullptr)
    *verdict = {false, "copied: its offset is no multiple of " + std::to_string(entry.stored->width)};
  return copy;
}

void TensorFile::drop_pages(std::size_t index) const {
  const TensorInfo& info = state_->infos.at(index);
  if (state_->mapped) state_->mapped->drop(state_->entries[index].begin, info.bytes());
}

HostArray TensorFile::read(std::size_t index) const {
  const TensorInfo& info = state_->infos.at(index);
  HostArray array(info.shape, info.dtype);
  read(index, array.bytes);
  return array;
}

}  // namespace samebytes::io
