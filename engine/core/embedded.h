// Files that the build put into the library, packed: kernel texts and the digits data set.
#pragma once

#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace samebytes::detail {

struct EmbeddedFile {
  std::string_view name;   // path relative to its root, "cpu/softmax.cl"
  std::string_view bytes;  // valid as long as the EmbeddedFiles that it is from
};

// As the build wrote it down: a file's name, and its size in the unpacked bytes of all files.
struct EmbeddedEntry {
  std::string_view name;
  std::size_t size = 0;
};

// Unpacked files, which take memory while it lives.
class EmbeddedFiles {
 public:
  // `packed` is a gzip member with the bytes of all entries, in their order. Throws Error if it is damaged.
  EmbeddedFiles(std::string_view packed, std::span<const EmbeddedEntry> entries);
  EmbeddedFiles(const EmbeddedFiles&) = delete;
  EmbeddedFiles& operator=(const EmbeddedFiles&) = delete;
  auto begin() const { return files_.begin(); }
  auto end() const { return files_.end(); }

 private:
  std::string bytes_;
  std::vector<EmbeddedFile> files_;
};

EmbeddedFiles embedded_kernels();  // cl/
EmbeddedFiles embedded_digits();   // examples/data/

}  // namespace samebytes::detail
