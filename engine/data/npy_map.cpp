#include "samebytes/data/npy_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/io_error.h"
#include "data/npy_header.h"

namespace samebytes::data {

struct NpyMap::Mapping {
  // Pages of a file, private to their owner: a write changes a copy of the page.
  struct Pages {
    Pages(const std::string& path, int file, std::size_t size_) : size(size_) {
      if (size == 0) return;
      void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
      if (mapped == MAP_FAILED)
        throw IoError("npy_map: " + path + ": expected a file that can be mapped: " + std::strerror(errno), path);
      bytes = static_cast<std::byte*>(mapped);
    }
    ~Pages() {
      if (bytes != nullptr) ::munmap(bytes, size);
    }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    std::byte* bytes = nullptr;
    std::size_t size;
  };

  struct File {
    explicit File(const std::string& path) : descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
      struct stat info {};
      if (descriptor < 0 || ::fstat(descriptor, &info) != 0) {
        const int error = errno;
        if (descriptor >= 0) ::close(descriptor);
        throw IoError("npy_map: " + path + ": expected a readable file: " + std::strerror(error), path);
      }
      if (!S_ISREG(info.st_mode)) {
        ::close(descriptor);
        throw IoError("npy_map: " + path + ": expected a file that can be mapped, found a folder or device", path);
      }
      size = static_cast<std::size_t>(info.st_size);
    }
    ~File() { ::close(descriptor); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    int descriptor;
    std::size_t size = 0;
  };

  explicit Mapping(const std::string& path_) : path(path_), file(path), pages(path, file.descriptor, file.size) {
    const std::span<const std::byte> bytes(pages.bytes, pages.size);
    const auto refuse = [&](std::int64_t offset, const char* expected, const std::string& found) {
      detail::throw_io("npy_map", path, offset, std::string(expected) + " (read_npy reads others)", found);
    };
    if (bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b})
      refuse(0, "an unpacked file", "gzip");
    layout = detail::read_npy_layout(path, bytes);
    const auto start = static_cast<std::int64_t>(layout.header.start);
    if (detail::is_big_endian(layout.header, layout.width)) refuse(start, "little-endian values", "big-endian ones");
    if (detail::is_first_index_fastest(layout.header)) refuse(start, "values in C order", "Fortran order");
    if (layout.widen)
      refuse(start, "a type that needs no conversion", std::to_string(8 * layout.width) + "-bit integers");
    if (layout.header.start % layout.width != 0)
      refuse(start, "values at a multiple of their size",
             "a header of " + std::to_string(layout.header.start) + " bytes");
  }

  std::string path;
  File file;
  Pages pages;
  detail::NpyLayout layout;
};

NpyMap::NpyMap(const std::string& path) : mapping_(std::make_shared<const Mapping>(path)) {}

const Shape& NpyMap::shape() const { return mapping_->layout.shape; }
Dtype NpyMap::dtype() const { return mapping_->layout.dtype; }

std::span<const std::byte> NpyMap::bytes() const {
  return std::span<const std::byte>(mapping_->pages.bytes, mapping_->pages.size).subspan(mapping_->layout.header.start);
}

Array NpyMap::array(Adoption* verdict) const {
  if (shape().size() == 0) {
    if (verdict != nullptr) *verdict = {true, "adopted: there are no bytes"};
    return empty(shape(), dtype());
  }
  // A range of memory can be adopted only once, so every array has its own mapping; unmodified pages are shared with
  // the file.
  const auto pages = std::make_shared<Mapping::Pages>(mapping_->path, mapping_->file.descriptor, mapping_->pages.size);
  return adopt(
      pages->bytes + mapping_->layout.header.start, shape(), dtype(), [pages] {}, verdict);
}

namespace {

class MappedSet final : public Dataset {
 public:
  explicit MappedSet(std::vector<MappedColumn> columns) : columns_(std::move(columns)) {
    if (columns_.empty()) throw ArgumentError("mapped: a sample has at least one field, got none");
    for (const MappedColumn& column : columns_) {
      const Shape& shape = column.rows.shape();
      if (shape.rank() == 0)
        throw ArgumentError("mapped: '" + column.name + "' wants a first axis that counts samples, got a scalar");
      if (size_ >= 0 && shape[0] != size_)
        throw ArgumentError("mapped: columns of one length: '" + columns_.front().name + "' has " +
                            std::to_string(size_) + " samples, '" + column.name + "' " + std::to_string(shape[0]));
      for (const FieldSpec& field : fields_)
        if (field.name == column.name)
          throw ArgumentError("mapped: fields have different names, got '" + column.name + "' twice");
      size_ = shape[0];
      fields_.push_back(
          {column.name, Shape(std::span(shape.begin() + 1, shape.end())), column.rows.dtype(), column.background});
    }
  }

  std::int64_t size() const override { return size_; }
  const std::vector<FieldSpec>& fields() const override { return fields_; }
  bool read(std::int64_t index, std::span<const Field> dst) const override {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::size_t row = dst[i].bytes.size();
      const auto src = columns_[i].rows.bytes().subspan(static_cast<std::size_t>(index) * row, row);
      if (row > 0) std::memcpy(dst[i].bytes.data(), src.data(), row);
    }
    return true;
  }

 private:
  std::vector<MappedColumn> columns_;
  std::vector<FieldSpec> fields_;
  std::int64_t size_ = -1;
};

}  // namespace

DatasetPtr mapped(std::vector<MappedColumn> columns) { return std::make_shared<MappedSet>(std::move(columns)); }

}  // namespace samebytes::data
