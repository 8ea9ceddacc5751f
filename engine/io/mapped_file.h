// A file in memory: private pages, read as they are touched; what is written to them stays in the program.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <memory>

namespace samebytes::io {

class MappedFile {
 public:
  // Null, with errno, where the file cannot be mapped. Requires: size above 0.
  static std::shared_ptr<MappedFile> map(int file, std::size_t size) {
    void* const data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
    if (data == MAP_FAILED) return nullptr;
    return std::shared_ptr<MappedFile>(new MappedFile(static_cast<std::byte*>(data), size));
  }
  ~MappedFile() { ::munmap(data_, size_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  // Lets the system forget what the whole pages of these bytes hold; they come from the file again.
  void drop(std::size_t begin, std::size_t bytes) const {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t first = (begin + page - 1) / page * page, last = (begin + bytes) / page * page;
    if (first < last) ::madvise(data_ + first, last - first, MADV_DONTNEED);
  }

 private:
  MappedFile(std::byte* data, std::size_t size) : data_(data), size_(size) {}
  std::byte* data_;
  std::size_t size_;
};

}  // namespace samebytes::io
