// The safetensors format (github.com/huggingface/safetensors, README "Format"): the length of a JSON header as 8 bytes,
// the header (name -> dtype, shape, data_offsets), then the values without gaps. This header handles named arrays in
// host memory; modules.h saves and loads layers through it. Reading goes straight into the caller's memory. A damaged
// file causes an IoError with the byte offset and what was expected there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/dtype.h"
#include "samebytes/host_array.h"
#include "samebytes/io/files.h"
#include "samebytes/shape.h"

namespace samebytes::io {

// Key-value pairs about the file itself, such as {"format", "pt"}.
using Metadata = std::vector<std::pair<std::string, std::string>>;

// Values to write: dense, last axis fastest; not owned.
struct TensorView {
  std::string name;
  Dtype dtype = f32;
  Shape shape;
  std::span<const std::byte> bytes;
};

// Writes the file atomically, in the given order except that wider dtypes come first, so that every tensor is aligned.
// Throws ArgumentError for duplicate names, the name "__metadata__", and bytes that do not match a shape; IoError as
// AtomicFile.
void save_tensors(const std::string& path, std::span<const TensorView> tensors, const Metadata& metadata = {},
                  Access access = Access::by_umask);

// One tensor of a file, as read() returns it.
struct TensorInfo {
  std::string name;
  Dtype dtype = f32;
  Shape shape;
  std::size_t bytes() const { return static_cast<std::size_t>(shape.size()) * bytes_of(dtype); }
};

// An open file with a completely checked header. I16, U16 and I8 become i32. Use it from one thread at a time.
class TensorFile {
 public:
  // Throws IoError for a missing or damaged file and for an unsupported dtype (such as F8_E4M3).
  explicit TensorFile(const std::string& path);
  ~TensorFile();
  TensorFile(TensorFile&&) noexcept;
  TensorFile& operator=(TensorFile&&) noexcept;

  const std::string& path() const;
  const std::vector<TensorInfo>& tensors() const;  // in the order of their bytes
  const Metadata& metadata() const;                // sorted by key
  std::optional<std::size_t> find(const std::string& name) const;
  // Reads tensor `index` into dst. Throws ArgumentError if the size of dst differs, IoError if the file has been
  // truncated.
  void read(std::size_t index, std::span<std::byte> dst) const;
  HostArray read(std::size_t index) const;
  // Tensor `index` as an array over the pages of the file, which stay mapped as long as an array needs them: nothing is
  // read before somebody touches it, and what is written stays in the program. Copied where the device does not read
  // host memory (`verdict` says which, as adopt()), and for tensors whose offset is no multiple of their elements'
  // size. Throws ArgumentError for a tensor without elements and for I16, U16 and I8, IoError if the
  // file cannot be mapped. A file that another program shortens meanwhile ends this one, as with every mapped file.
  Array map(std::size_t index, Adoption* verdict = nullptr) const;
  // Gives the memory of a mapped tensor back to the system: who touches its pages again reads the file again, and what
  // was written into them is lost. Without effect on what was never mapped.
  void drop_pages(std::size_t index) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace samebytes::io
