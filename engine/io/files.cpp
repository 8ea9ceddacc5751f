#include "samebytes/io/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "core/available_memory.h"
#include "core/files.h"
#include "core/io_error.h"

namespace samebytes::io {
namespace {

struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

struct InflateStream {
  z_stream stream{};
  ~InflateStream() { inflateEnd(&stream); }
};

constexpr std::size_t kAlwaysFits = std::size_t{64} << 20;     // what is smaller is read without a look at the memory
constexpr std::size_t kMostOfStream = std::size_t{256} << 20;  // of a device or pipe, which may have no end

std::string system_text(int error) { return std::strerror(error); }

// What processes that were killed while they wrote this file left beside it.
void remove_abandoned(const std::string& target) {
  namespace fs = std::filesystem;
  const fs::path path(target);
  const std::string begin = path.filename().string() + std::string(detail::kTemporary);
  std::error_code error, ignored;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().starts_with(begin) && detail::is_abandoned(entry->path()))
      fs::remove(entry->path(), ignored);
}

}  // namespace

std::vector<std::byte> unpack_if_gzip(std::string_view name, std::span<const std::byte> bytes) {
  const bool packed = bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
  if (!packed) return {bytes.begin(), bytes.end()};

  constexpr int kGzipWindow = 15 + 16;  // zlib's code for gzip framing with the largest window
  InflateStream zlib;
  if (inflateInit2(&zlib.stream, kGzipWindow) != Z_OK) throw std::bad_alloc();
  const std::uint64_t most = detail::most_unpacked(bytes.size());
  std::vector<std::byte> out(std::max<std::size_t>(4 * bytes.size(), 4096));
  std::size_t filled = 0, consumed = 0;
  constexpr std::size_t kChunk = std::numeric_limits<uInt>::max() / 2;
  while (true) {
    if (filled == out.size()) out.resize(std::min<std::uint64_t>(out.size() * 2, most + 1));
    const std::size_t in = std::min(bytes.size() - consumed, kChunk), room = std::min(out.size() - filled, kChunk);
    zlib.stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data() + consumed));
    zlib.stream.avail_in = static_cast<uInt>(in);
    zlib.stream.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
    zlib.stream.avail_out = static_cast<uInt>(room);
    const int status = inflate(&zlib.stream, Z_NO_FLUSH);
    consumed += in - zlib.stream.avail_in;
    filled += room - zlib.stream.avail_out;
    const auto offset = static_cast<std::int64_t>(consumed);
    if (filled > most)
      detail::throw_io("gzip", std::string(name), offset,
                       "at most " + std::to_string(most) + " bytes from " + std::to_string(bytes.size()),
                       "more; unpack it by hand if you trust it");
    if (status == Z_STREAM_END) {
      if (consumed == bytes.size()) break;
      if (inflateReset(&zlib.stream) != Z_OK) throw std::bad_alloc();
    } else if (status == Z_BUF_ERROR || (status == Z_OK && consumed == bytes.size() && zlib.stream.avail_out > 0)) {
      if (consumed < bytes.size()) continue;  // only the output was full
      detail::throw_io("gzip", std::string(name), offset, "the rest of the gzip stream", "the end of the file");
    } else if (status == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (status != Z_OK) {
      detail::throw_io("gzip", std::string(name), offset, "an intact gzip stream",
                       std::string("damage: ") + (zlib.stream.msg ? zlib.stream.msg : "unknown"));
    }
  }
  out.resize(filled);
  return out;
}

std::vector<std::byte> read_file(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.value < 0) throw IoError("read: " + path + ": expected a readable file: " + system_text(errno), path);
  struct stat info {};
  if (::fstat(file.value, &info) != 0) throw IoError("read: " + path + ": fstat: " + system_text(errno), path);
  if (S_ISDIR(info.st_mode)) throw IoError("read: " + path + ": expected a file, found a folder", path);
  if (static_cast<std::size_t>(std::max<off_t>(info.st_size, 0)) > kAlwaysFits)
    if (const auto most = detail::most_memory(); most && static_cast<std::size_t>(info.st_size) > *most)
      detail::throw_io("read", path, -1, "at most " + std::to_string(*most) + " bytes, the memory there is",
                       std::to_string(info.st_size));
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::max<off_t>(info.st_size, 0)) + 1);
  std::size_t filled = 0;
  while (true) {
    const ssize_t got = ::read(file.value, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw IoError("read: " + path + ": at byte " + std::to_string(filled) + ": " + system_text(errno), path,
                    static_cast<std::int64_t>(filled));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
    if (filled < bytes.size()) continue;
    if (!S_ISREG(info.st_mode) && filled >= kMostOfStream)
      throw IoError("read: " + path + ": expected at most " + std::to_string(kMostOfStream >> 20) +
                        " MiB of what is no regular file, and there is more",
                    path, static_cast<std::int64_t>(filled));
    bytes.resize(bytes.size() * 2);
  }
  bytes.resize(filled);
  if (filled >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b}) return unpack_if_gzip(path, bytes);
  return bytes;
}

AtomicFile::AtomicFile(const std::string& path, Access access) : path_(path), target_(path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::is_symlink(path, ignored)) {
    detail::refuse_planted_link("write", path_);
    const fs::path resolved = fs::weakly_canonical(path, ignored);
    if (!ignored) target_ = resolved.string();
  }
  struct stat old {};
  const bool exists = ::stat(target_.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) throw IoError("write: " + path_ + ": expected a file, found a folder", path_);
  if (exists && !S_ISREG(old.st_mode)) {
    file_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file_ < 0) fail("open", errno);
    return;
  }
  for (int attempt = 0; file_ < 0; ++attempt) {
    constexpr int kAttempts = 100;
    temporary_ = detail::temporary_name(target_);
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, access == Access::owner ? 0600 : 0666);
    if (file_ < 0 && (errno != EEXIST || attempt == kAttempts)) {
      temporary_.clear();  // belongs to another writer: do not remove it
      fail("open", errno);
    }
  }
  if (exists) (void)::fchmod(file_, old.st_mode & 07777);
  remove_abandoned(target_);
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) ::close(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* call, int error) {
  throw IoError("write: " + path_ + ": at byte " + std::to_string(written_) + ": " + call + ": " + system_text(error) +
                    (temporary_.empty() ? "" : "; the old file, if there was one, is unchanged"),
                path_, written_);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(file_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("write", errno);
    written_ += put;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

void AtomicFile::commit() {
  if (!temporary_.empty() && ::fsync(file_) != 0) fail("fsync", errno);
  const int file = file_;
  file_ = -1;
  if (::close(file) != 0) fail("close", errno);
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("rename", errno);
  temporary_.clear();
  const std::filesystem::path folder = std::filesystem::path(target_).parent_path();
  const Descriptor directory{::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  // Some file systems cannot sync a folder; the rename itself has happened, and either file is intact.
  if (directory.value >= 0) (void)::fsync(directory.value);
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void write_file(const std::string& path, std::string_view text) {
  write_file(path, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace samebytes::io
