// Checks what PoCL keeps of compiled kernels. The driver loads whatever lies in its cache folder: a flipped bit ends
// the process by a signal, or gives other numbers. So each program has a file of checksums beside it, in
// FOLDER/samebytes. They are compared before the program is built; what does not match is removed, and the driver
// compiles it again. Files get their checksum once kernels made of them have run. Until then a marker file says that
// they are being tried: the process that finds one whose owner is gone removes what has no checksum, since it may have
// ended that process. docs/decisions/kernel_cache.md has the reasons. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/hash.h"
#include "core/mutex.h"

namespace samebytes::detail {

// Where PoCL keeps kernels, by the environment.
std::string kernel_cache_folder();
// Why the driver cannot build there even what it has compiled before, and what to do; empty if it can.
std::string why_no_kernels_in(const std::string& folder);
// Why the driver of this version cannot link what it compiles, and what to do; empty if it can, as far as is known. It
// would end the process.
std::string why_no_linker(const std::string& driver);

// The key of a program: whatever changes it changes what the driver compiles.
Key128 program_key(std::string_view text, std::string_view options, std::string_view device, std::string_view driver);

// The name of a program's file of checksums, and the text of one with its own checksum behind it.
std::string hex_text(const Key128& key);
std::string with_checksum(const std::string& text);

class KernelCache {
 public:
  // With an empty folder, or one that does not exist or cannot be written, nothing is checked.
  explicit KernelCache(std::string folder) : folder_(std::move(folder)) {}
  ~KernelCache();
  KernelCache(const KernelCache&) = delete;

  // While it lives, other processes wait that want to build the same program from its source.
  class Turn {
   public:
    Turn() = default;
    explicit Turn(int file) : file_(file) {}
    Turn(Turn&& from) noexcept : file_(std::exchange(from.file_, -1)) {}
    Turn& operator=(Turn&& from) noexcept {
      std::swap(file_, from.file_);
      return *this;
    }
    ~Turn();

   private:
    int file_ = -1;
  };
  struct Checked {
    std::string wrong;  // empty if nothing
    Turn turn;          // to be held until the program is built
  };
  // Before a program is built: removes files that do not match. Waits for its turn where the driver will compile the
  // source, at most kMostWait.
  Checked check(const Key128& key);
  // After a program was built: finds its folder, by the time of the driver's last access.
  void note_built(const Key128& key);
  bool is_on();  // whether there is a folder in which it can keep checksums
  // Whether the driver has this program, by our checksums. Costs reading a file.
  bool has_program(const Key128& key);
  // Whether it surely lacks the kernel of a program that was built here, for groups of this size.
  bool lacks_kernel(const Key128& key, const std::string& entry, const std::size_t (&local)[3]);
  // Before the first launch of a kernel. Whether it has no checksum yet.
  bool note_use(const Key128& key, const std::string& entry);
  // Whether kernels are tried that have no checksums. settle(): they have all run. Costs a listing of their folders.
  bool is_unsettled() const { return is_unsettled_.load(std::memory_order_acquire); }
  std::uint64_t uses() const { return uses_.load(std::memory_order_acquire); }  // that unsettled it
  void settle();
  // What was tried never ended: the marker stays.
  void keep_marker();

 private:
  struct Sum {
    std::uint64_t size = 0;
    Key128 hash;
  };
  struct Program {
    std::string folder;  // within folder_; empty: not known
    std::map<std::string, Sum> sums;
    std::int64_t began = 0;  // nanoseconds of the file system's clock
    bool is_in_marker = false;
  };
  bool start() SAMEBYTES_REQUIRES(mutex_);
  std::string check_files(const std::string& name, Program* program) SAMEBYTES_REQUIRES(mutex_);
  void clean_up_after_dead() SAMEBYTES_REQUIRES(mutex_);
  void remove_without_sums(const std::string& folder, const std::map<std::string, Sum>& sums);
  bool read_sums(const std::string& name, Program* program) const;
  void write_sums(const std::string& name, const Program& program) const;
  void remove(const std::string& name, Program* program);
  std::string first_mismatch(const Program& program) const;
  std::string find_folder(const Program& program) const SAMEBYTES_REQUIRES(mutex_);
  void write_marker(const std::string& line) SAMEBYTES_REQUIRES(mutex_);
  void add_sums(const std::string& name, Program* program) const;
  void drop_marker() SAMEBYTES_REQUIRES(mutex_);

  const std::filesystem::path folder_;
  std::filesystem::path own_;  // folder_/samebytes
  Mutex mutex_;
  bool is_started_ SAMEBYTES_GUARDED_BY(mutex_) = false;
  bool is_on_ SAMEBYTES_GUARDED_BY(mutex_) = false;
  int marker_ SAMEBYTES_GUARDED_BY(mutex_) = -1;
  std::string marker_path_ SAMEBYTES_GUARDED_BY(mutex_);
  std::map<std::string, Program> programs_ SAMEBYTES_GUARDED_BY(mutex_);  // by the key in hexadecimal
  std::atomic<bool> is_unsettled_{false};
  std::atomic<std::uint64_t> uses_{0};
};

}  // namespace samebytes::detail
