#include "core/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <ctime>

#include "core/io_error.h"

namespace samebytes::detail {
namespace {

std::uint64_t unguessable_number() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
    number = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  return number;
}

bool is_planted(const std::string& link) {
  const std::filesystem::path parent = std::filesystem::path(link).parent_path();
  struct stat own {
  }, folder{};
  return ::lstat(link.c_str(), &own) == 0 && S_ISLNK(own.st_mode) &&
         ::stat(parent.empty() ? "." : parent.c_str(), &folder) == 0 && (folder.st_mode & S_IWOTH) != 0 &&
         own.st_uid != ::geteuid() && own.st_uid != folder.st_uid;
}

}  // namespace

std::string temporary_name(const std::string& target) {
  return target + std::string(kTemporary) + std::to_string(::getpid()) + "-" + std::to_string(unguessable_number());
}

bool is_old(const std::filesystem::path& path) {
  constexpr std::time_t kOld = 3600;  // seconds
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && std::time(nullptr) - info.st_mtime > kOld;
}

bool is_abandoned(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  const std::size_t mark = name.rfind(kTemporary);
  if (mark == std::string::npos) return false;
  pid_t process = 0;
  std::uint64_t number = 0;
  const char* const end = name.data() + name.size();
  const auto first = std::from_chars(name.data() + mark + kTemporary.size(), end, process);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return false;
  const auto second = std::from_chars(first.ptr + 1, end, number);
  return second.ec == std::errc() && second.ptr == end && process > 0 && ::kill(process, 0) != 0 && errno == ESRCH &&
         is_old(path);
}

void refuse_planted_link(const std::string& writer, const std::string& path) {
  if (is_planted(path)) throw_io(writer, path, -1, "a file", "somebody else's link in a folder that is everybody's");
}

std::FILE* open_to_write(const std::string& writer, const std::string& path, int flags) {
  flags |= O_WRONLY | O_CREAT | O_CLOEXEC;
  constexpr mode_t kByUmask = 0666;
  int file = ::open(path.c_str(), flags | O_NOFOLLOW, kByUmask);
  if (file < 0 && (flags & O_EXCL) == 0) {
    const int error = errno;
    refuse_planted_link(writer, path);  // which the kernel may refuse as well
    errno = error;
    if (error == ELOOP) file = ::open(path.c_str(), flags, kByUmask);
  }
  if (file < 0) return nullptr;
  std::FILE* const opened = ::fdopen(file, (flags & O_APPEND) != 0 ? "a" : "w");
  if (opened == nullptr) ::close(file);
  return opened;
}

}  // namespace samebytes::detail
