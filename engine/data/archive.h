// Reads files inside an archive (tar, zip and others that libarchive supports, with any of its compressions), for data
// sets that are distributed as one file.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace samebytes::detail {

struct ArchiveMember {
  std::string name;  // its path in the archive
  std::vector<std::byte> bytes;
};

// The regular files, in the archive's order. Throws IoError, naming `reader`, for a file that is missing, damaged or
// not an archive.
std::vector<ArchiveMember> read_archive(const std::string& reader, const std::string& path);

}  // namespace samebytes::detail
