// What all who write files share: names that nobody can guess, links that somebody else planted, what killed processes
// left, and how much a packed file may unpack to. No state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

namespace samebytes::detail {

// In the name of what is being written; then come the process, "-" and a number.
inline constexpr std::string_view kTemporary = ".tmp-";

// "TARGET.tmp-PROCESS-NUMBER", with a number that nobody can guess.
std::string temporary_name(const std::string& target);

// Whether it was last changed more than an hour ago. A link counts by itself.
bool is_old(const std::filesystem::path& path);

// Whether `path` is a temporary name whose process was killed: it is gone, and the file is old, because the process may
// be one of another machine that writes to the same folder.
bool is_abandoned(const std::filesystem::path& path);

// Throws IoError, naming `writer`, if `path` is somebody else's link in a folder where everybody may write, as /tmp is:
// it may lead to a file of ours.
void refuse_planted_link(const std::string& writer, const std::string& path);

// Opens a file for writing that may grow for as long as a run takes; a new one follows the umask. `flags`: O_APPEND,
// O_TRUNC, or O_EXCL, which makes a new file and follows no link. Null, with errno, if it cannot be opened; throws
// IoError, naming `writer`, for a planted link.
std::FILE* open_to_write(const std::string& writer, const std::string& path, int flags);

// The most bytes that a packed file may unpack to, since a few must not fill the memory: 200 times its own, or 64 MiB.
// Sound shrinks to a half, text to a tenth.
inline std::uint64_t most_unpacked(std::uint64_t packed) {
  constexpr std::uint64_t kMostRatio = 200, kAlwaysFits = std::uint64_t{64} << 20;
  return std::max(kAlwaysFits, std::min(packed, UINT64_MAX / kMostRatio) * kMostRatio);
}

}  // namespace samebytes::detail
