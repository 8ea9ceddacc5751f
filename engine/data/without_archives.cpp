// Built instead of archive.cpp where SAMEBYTES_ARCHIVES is off.
#include "core/missing_part.h"
#include "data/archive.h"

namespace samebytes::detail {

std::vector<ArchiveMember> read_archive(const std::string& reader, const std::string& path, std::size_t) {
  throw_missing(reader + ": " + path, "archives", "SAMEBYTES_ARCHIVES",
                "package libarchive-dev; or unpack the archive and give the folder");
}

}  // namespace samebytes::detail
