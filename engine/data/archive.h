// Reads files inside an archive (tar, plain or packed by gzip or bzip2, and zip), for data sets that are distributed as
// one file.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace samebytes::detail {

struct ArchiveMember {
  std::string name;  // its path in the archive
  std::vector<std::byte> bytes;
};

inline constexpr std::size_t kMostArchiveEntries = 1'000'000;

// The regular files, in the archive's order; nothing is written and no link is followed. Throws IoError, naming
// `reader`, for a file that is missing, damaged or not an archive, for one with more entries than `most_entries`, and
// for one that unpacks to more than 200 times its own size and 64 MiB.
std::vector<ArchiveMember> read_archive(const std::string& reader, const std::string& path,
                                        std::size_t most_entries = kMostArchiveEntries);

}  // namespace samebytes::detail
