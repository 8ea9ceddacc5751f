// Reads and writes whole files. Reading unpacks gzip files. Writing is atomic: it writes under a temporary name in the
// same folder, syncs, renames, and syncs the folder, so that a full disk or a killed program leaves the old file
// intact. Samebytes writes all files through AtomicFile. Errors are IoError with path and offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace samebytes::io {

// The bytes of a file, unpacked if it begins like gzip (concatenated members too). Offsets in later errors about them
// count unpacked bytes; a damaged or truncated gzip stream is reported at its packed offset.
// Throws IoError for a missing, unreadable or damaged file, one that is larger than the memory, and one that unpacks to
// more than 200 times its own size and 64 MiB.
std::vector<std::byte> read_file(const std::string& path);

// The same for bytes in memory; `name` stands for the path in errors.
std::vector<std::byte> unpack_if_gzip(std::string_view name, std::span<const std::byte> bytes);

// Who may read a new file: those that the process's umask leaves, or its owner alone.
enum class Access : std::uint8_t { by_umask, owner };

// A file being written. Nothing appears under `path` before commit(). A device or pipe (/dev/stdout) is written
// directly; a symbolic link stays, and its target is replaced. An existing file keeps its permissions. What processes
// that were killed left of this file is removed once it is an hour old.
class AtomicFile {
 public:
  // Throws IoError if the folder is not writable.
  explicit AtomicFile(const std::string& path, Access access = Access::by_umask);
  ~AtomicFile();  // without commit(): removes the temporary file and keeps the old file
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Throws IoError; for a full disk, its offset is the first byte that was not written.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  // Replaces the file by the new bytes. On failure throws IoError and keeps the old file. Call once.
  void commit();

 private:
  [[noreturn]] void fail(const char* call, int error);

  std::string path_;       // as the caller wrote it, for messages
  std::string target_;     // file to replace: path_ with links resolved
  std::string temporary_;  // empty if the target is written directly
  int file_ = -1;
  std::int64_t written_ = 0;
};

// write() and commit() in one.
void write_file(const std::string& path, std::span<const std::byte> bytes);
void write_file(const std::string& path, std::string_view text);

}  // namespace samebytes::io
