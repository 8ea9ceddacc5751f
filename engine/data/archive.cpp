#include "data/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <cstdint>
#include <filesystem>
#include <memory>

#include "core/files.h"
#include "samebytes/error.h"

namespace samebytes::detail {
namespace {

constexpr std::size_t kArchiveBlock = 65536;

struct Closer {
  void operator()(archive* handle) const { archive_read_free(handle); }
};

[[noreturn]] void throw_damaged(const std::string& reader, const std::string& path, archive* handle) {
  const char* text = archive_error_string(handle);
  throw IoError(reader + ": " + path + ": expected a whole archive, found: " + (text ? text : "damage"), path,
                archive_filter_bytes(handle, -1));
}

[[noreturn]] void throw_too_large(const std::string& reader, const std::string& path, const std::string& expected) {
  throw IoError(
      reader + ": " + path + ": expected at most " + expected + ", found more; unpack it by hand if you trust it",
      path);
}

}  // namespace

std::vector<ArchiveMember> read_archive(const std::string& reader, const std::string& path, std::size_t most_entries) {
  const std::unique_ptr<archive, Closer> handle(archive_read_new());
  if (!handle) throw std::bad_alloc();
  // Of the others some allocate what a header only claims.
  archive_read_support_filter_gzip(handle.get());
  archive_read_support_filter_bzip2(handle.get());
  archive_read_support_format_tar(handle.get());
  archive_read_support_format_zip(handle.get());
  if (archive_read_open_filename(handle.get(), path.c_str(), kArchiveBlock) != ARCHIVE_OK)
    throw_damaged(reader, path, handle.get());

  std::error_code ignored;
  const std::uintmax_t packed = std::filesystem::file_size(path, ignored);
  const std::uint64_t most = most_unpacked(ignored ? 0 : packed);
  std::uint64_t unpacked = 0;
  std::vector<ArchiveMember> members;
  archive_entry* entry = nullptr;
  for (std::size_t entries = 0;; ++entries) {
    const int status = archive_read_next_header(handle.get(), &entry);
    if (status == ARCHIVE_EOF) return members;
    if (status != ARCHIVE_OK) throw_damaged(reader, path, handle.get());
    if (entries == most_entries)
      throw_too_large(reader, path, std::to_string(most_entries) + " files, folders and links in an archive");
    if (archive_entry_filetype(entry) != AE_IFREG) continue;
    ArchiveMember& member = members.emplace_back();
    const char* const name = archive_entry_pathname(entry);
    if (name == nullptr)
      throw IoError(reader + ": " + path + ": expected names of files, found one that cannot be read", path);
    member.name = name;
    std::byte block[kArchiveBlock];
    for (;;) {
      const la_ssize_t got = archive_read_data(handle.get(), block, sizeof block);
      if (got < 0) throw_damaged(reader, path, handle.get());
      if (got == 0) break;
      unpacked += static_cast<std::uint64_t>(got);
      if (unpacked > most)
        throw_too_large(reader, path, std::to_string(most) + " bytes from an archive of " + std::to_string(packed));
      member.bytes.insert(member.bytes.end(), block, block + got);
    }
  }
}

}  // namespace samebytes::detail
