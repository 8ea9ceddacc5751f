// Whole files in and out. Reading unpacks gzip where the file is packed; writing is atomic: under a temporary name in
// the same folder, synced, renamed, and the folder synced, so that a full disk or a killed program leaves the old file
// whole. Everything in Samebytes that writes a file writes it through AtomicFile. Errors are IoError with path and
// offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace samebytes::io {

// The bytes of a file, unpacked if it begins as gzip does (concatenated members too). Offsets of later complaints about
// them count unpacked bytes; a damaged or cut gzip stream is reported at its packed offset.
// Throws IoError for a missing, unreadable or damaged file.
std::vector<std::byte> read_file(const std::string& path);

// The same for bytes in memory; `name` stands for the path in errors.
std::vector<std::byte> unpack_if_gzip(std::string_view name, std::span<const std::byte> bytes);

// A file being written. Nothing is seen under `path` before commit(). A device or pipe (/dev/stdout) is written
// straight; a symbolic link stays one, its target is replaced. An existing file keeps its permissions.
class AtomicFile {
 public:
  // Throws IoError where the folder cannot be written.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();  // without commit(): the temporary file is removed, the old file stays
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Throws IoError, for a full disk at the first byte that found no place.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  // Makes the new bytes the file. Throws IoError and leaves the old file otherwise. Call once.
  void commit();

 private:
  [[noreturn]] void fail(const char* call, int error);

  std::string path_;       // as the caller wrote it, for messages
  std::string target_;     // what is replaced: path_ with links resolved
  std::string temporary_;  // empty where the target is written straight
  int file_ = -1;
  std::int64_t written_ = 0;
};

// write() and commit() in one.
void write_file(const std::string& path, std::span<const std::byte> bytes);
void write_file(const std::string& path, std::string_view text);

}  // namespace samebytes::io
