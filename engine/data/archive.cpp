#include "data/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <memory>

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

}  // namespace

std::vector<ArchiveMember> read_archive(const std::string& reader, const std::string& path) {
  const std::unique_ptr<archive, Closer> handle(archive_read_new());
  if (!handle) throw std::bad_alloc();
  archive_read_support_filter_all(handle.get());
  archive_read_support_format_all(handle.get());
  if (archive_read_open_filename(handle.get(), path.c_str(), kArchiveBlock) != ARCHIVE_OK)
    throw_damaged(reader, path, handle.get());

  std::vector<ArchiveMember> members;
  for (archive_entry* entry = nullptr;;) {
    const int status = archive_read_next_header(handle.get(), &entry);
    if (status == ARCHIVE_EOF) return members;
    if (status != ARCHIVE_OK) throw_damaged(reader, path, handle.get());
    if (archive_entry_filetype(entry) != AE_IFREG) continue;
    ArchiveMember& member = members.emplace_back();
    member.name = archive_entry_pathname(entry);
    std::byte block[kArchiveBlock];
    for (;;) {
      const la_ssize_t got = archive_read_data(handle.get(), block, sizeof block);
      if (got < 0) throw_damaged(reader, path, handle.get());
      if (got == 0) break;
      member.bytes.insert(member.bytes.end(), block, block + got);
    }
  }
}

}  // namespace samebytes::detail
