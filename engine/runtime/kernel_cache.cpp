// Over 400 lines because files, checksums and the marker guard each other: each step says what the others may assume.
#include "runtime/kernel_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "core/files.h"
#include "runtime/devices.h"

namespace samebytes::detail {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHead = "samebytes kernel checksums 1";
constexpr const char* kMarker = "trying-";
constexpr const char* kTurns = "building";
constexpr const char* kBitcode = "program.bc";
constexpr std::chrono::seconds kMostWait{120};  // for another process that builds the same program
constexpr double kMostSearch =
    0.5;  // seconds of a process's life; in a cache of thousands of programs each takes 10 ms

// What this process found out, so that each of its engines need not.
struct Known {
  Mutex mutex;
  std::map<std::string, std::string> folders SAMEBYTES_GUARDED_BY(mutex);  // by the path of the checksums
  std::set<std::string> checked SAMEBYTES_GUARDED_BY(mutex);
  double searched SAMEBYTES_GUARDED_BY(mutex) = 0;  // seconds
};

Known& known_here() {
  static Known& known = *new Known;  // never destroyed: engines may end while the process does
  return known;
}

struct Descriptor {
  int value;
  explicit Descriptor(int file) : value(file) {}
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
  Descriptor(const Descriptor&) = delete;
};

Key128 hash_of(std::string_view bytes) {
  Hasher hasher;
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    hasher.add(word);
  }
  hasher.add(bytes.substr(at));
  hasher.add(static_cast<std::uint64_t>(bytes.size()));
  return hasher.key();
}

// A folder that a damaged or forged text names.
bool leads_elsewhere(const std::string& folder) {
  return folder.find("..") != std::string::npos || fs::path(folder).is_absolute();
}

std::optional<std::string> bytes_of(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (file.value < 0 || ::fstat(file.value, &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::read(file.value, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    filled += static_cast<std::size_t>(got);
  }
  return bytes;
}

// Whether a shared object is at least as long as its head says.
bool is_whole(std::string_view bytes) {
  constexpr std::size_t kHeadBytes = 64, kAtSections = 40, kAtSize = 58, kAtCount = 60;
  if (bytes.size() < kHeadBytes || bytes.substr(0, 4) !=
                                       "\x7f"
                                       "ELF")
    return false;
  std::uint64_t sections = 0;
  std::uint16_t size = 0, count = 0;
  std::memcpy(&sections, bytes.data() + kAtSections, sizeof sections);
  std::memcpy(&size, bytes.data() + kAtSize, sizeof size);
  std::memcpy(&count, bytes.data() + kAtCount, sizeof count);
  const std::uint64_t table = std::uint64_t{size} * count;
  return sections <= bytes.size() && table <= bytes.size() - sections;
}

bool is_object(const fs::path& path) { return path.extension() == ".so"; }

// What the driver loads, by its path within the folder of the program.
std::vector<std::string> files_of(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (!is_object(entry->path()) && entry->path().filename() != kBitcode) continue;
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) names.push_back(entry->path().lexically_relative(folder).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A lock on the byte of one file that stands for a program, which ends with the file; -1: nothing can be locked, or
// somebody had it all the time.
int take_turn(const fs::path& path, const Key128& key, std::chrono::steady_clock::duration most) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return -1;
  struct flock byte {};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = static_cast<off_t>(key.a >> 2);
  byte.l_len = 1;
  const auto end = std::chrono::steady_clock::now() + most;
  while (::fcntl(file, F_OFD_SETLK, &byte) != 0) {
    if ((errno != EAGAIN && errno != EACCES && errno != EINTR) || std::chrono::steady_clock::now() >= end) {
      ::close(file);
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return file;
}

std::int64_t nanoseconds(const timespec& time) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return static_cast<std::int64_t>(time.tv_sec) * kSecond + time.tv_nsec;
}

std::int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME_COARSE, &time);  // the one that files are stamped with
  return nanoseconds(time);
}

// Later than every stamp so far: what others touched in this tick, which lasts milliseconds, is not of the next one.
std::int64_t next_tick() {
  const std::int64_t tick = now();
  std::int64_t next = tick;
  while ((next = now()) == tick) std::this_thread::sleep_for(std::chrono::microseconds(500));
  return next;
}

}  // namespace

std::string hex_text(const Key128& key) {
  std::array<char, 33> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(key.a),
                static_cast<unsigned long long>(key.b));
  return text.data();
}

std::string with_checksum(const std::string& text) { return text + "sum " + hex_text(hash_of(text)) + "\n"; }

std::string kernel_cache_folder() {
  if (std::string folder = environment("POCL_CACHE_DIR"); !folder.empty()) return folder;
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) return cache + "/pocl/kcache";
  if (const std::string home = environment("HOME"); !home.empty()) return home + "/.cache/pocl/kcache";
  return "/tmp/pocl/kcache";
}

std::string why_no_kernels_in(const std::string& folder) {
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return "the driver cannot write to its kernel cache " + folder + " (" + std::strerror(errno) +
         "); set POCL_CACHE_DIR to a folder that can be written\n";
}

std::string why_no_linker(const std::string& driver) {
  const bool needs_one = driver.size() > 1 && driver[1] == '.' && driver[0] >= '1' && driver[0] <= '3';
  if (!needs_one) return {};
  const std::string folders = environment("PATH");
  std::istringstream each(folders);
  for (std::string folder; std::getline(each, folder, ':');)
    if (::access((folder + "/ld").c_str(), X_OK) == 0) return {};
  return "PoCL " + driver + " links kernels with ld, which no folder of PATH has (PATH is '" + folders +
         "'); set PATH, or install binutils";
}

Key128 program_key(std::string_view text, std::string_view options, std::string_view device, std::string_view driver) {
  Hasher hasher;
  for (const std::string_view part : {text, options, device, driver}) {
    const Key128 key = hash_of(part);
    hasher.add(key.a);
    hasher.add(key.b);
  }
  return hasher.key();
}

KernelCache::~KernelCache() {
  settle();
  MutexLock lock(mutex_);
  drop_marker();
}

bool KernelCache::start() {
  if (is_started_) return is_on_;
  is_started_ = true;
  struct stat info {};
  if (folder_.empty() || ::stat(folder_.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return false;
  own_ = folder_ / "samebytes";
  if (::mkdir(own_.c_str(), 0700) != 0 && errno != EEXIST) return false;
  is_on_ = ::access(own_.c_str(), R_OK | W_OK | X_OK) == 0;
  if (is_on_) clean_up_after_dead();
  return is_on_;
}

// Not while others try kernels: the driver would miss a file between making and loading it. One process at a time
// looks. What killed processes were writing or removing goes in any case.
void KernelCache::clean_up_after_dead() {
  const Descriptor gate(::open((own_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (gate.value < 0 || ::flock(gate.value, LOCK_EX) != 0) return;
  std::vector<std::pair<fs::path, int>> dead;
  bool has_living = false;
  std::error_code error, ignored;
  for (fs::directory_iterator entry(own_, error), end; !error && entry != end; entry.increment(error)) {
    if (is_abandoned(entry->path())) fs::remove_all(entry->path(), ignored);
    if (!entry->path().filename().string().starts_with(kMarker)) continue;
    const int file = ::open(entry->path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) continue;
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) {
      dead.emplace_back(entry->path(), file);
    } else {
      has_living = true;
      ::close(file);
    }
  }
  for (const auto& [path, file] : dead) {
    if (!has_living) {
      std::istringstream lines(bytes_of(path).value_or(""));
      for (std::string name, folder; lines >> name >> folder;) {
        Program program;
        read_sums(name, &program);
        remove_without_sums(folder, program.sums);
      }
      ::unlink(path.c_str());
    }
    ::close(file);
  }
}

void KernelCache::remove_without_sums(const std::string& folder, const std::map<std::string, Sum>& sums) {
  if (leads_elsewhere(folder)) return;
  std::error_code ignored;
  for (const std::string& name : files_of(folder_ / folder)) {
    const auto known = sums.find(name);
    if (known != sums.end())
      if (const auto bytes = bytes_of(folder_ / folder / name); bytes && hash_of(*bytes) == known->second.hash)
        continue;
    if (is_object(name))
      fs::remove_all((folder_ / folder / name).parent_path(), ignored);
    else
      fs::remove_all(folder_ / folder, ignored);
  }
}

bool KernelCache::read_sums(const std::string& name, Program* program) const {
  const std::optional<std::string> text = bytes_of(own_ / name);
  if (!text) return false;
  const std::size_t end = text->rfind("sum ");
  if (end == std::string::npos || *text != with_checksum(text->substr(0, end))) return false;
  std::istringstream lines(*text);
  std::string line;
  if (!std::getline(lines, line) || line != kHead || !std::getline(lines, program->folder) ||
      leads_elsewhere(program->folder))
    return false;
  unsigned long long size = 0, a = 0, b = 0;
  for (std::string path; lines >> std::hex >> size >> a >> b && lines.get() == ' ' && std::getline(lines, path);)
    program->sums[path] = {size, {a, b}};
  return true;
}

// Not synced: a text that was cut off is no text, by its last line.
void KernelCache::write_sums(const std::string& name, const Program& program) const {
  std::ostringstream out;
  out << kHead << '\n' << program.folder << '\n' << std::hex;
  for (const auto& [path, sum] : program.sums)
    out << sum.size << ' ' << sum.hash.a << ' ' << sum.hash.b << ' ' << path << '\n';
  const std::string text = with_checksum(out.str());
  const std::string temporary = temporary_name((own_ / name).string());
  const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.value < 0) return;
  const bool is_written = ::write(file.value, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!is_written || ::rename(temporary.c_str(), (own_ / name).c_str()) != 0) ::unlink(temporary.c_str());
}

// First out of the driver's sight as a whole.
void KernelCache::remove(const std::string& name, Program* program) {
  std::error_code ignored;
  fs::remove(own_ / name, ignored);
  if (!program->folder.empty()) {
    const std::string aside = temporary_name((own_ / "removed").string());
    if (::mkdir(aside.c_str(), 0700) == 0) {
      if (::rename((folder_ / program->folder).c_str(), (aside + "/program").c_str()) != 0)
        fs::remove_all(folder_ / program->folder, ignored);
      fs::remove_all(aside, ignored);
    }
  }
  *program = {};
}

// A file that is missing is made again by the driver.
std::string KernelCache::first_mismatch(const Program& program) const {
  const fs::path folder = folder_ / program.folder;
  for (const std::string& name : files_of(folder)) {
    const std::optional<std::string> bytes = bytes_of(folder / name);
    if (!bytes) continue;
    const auto known = program.sums.find(name);
    if (known == program.sums.end()) {
      if (is_object(name) && !is_whole(*bytes)) return name + " is cut off";
    } else if (bytes->size() != known->second.size || !(hash_of(*bytes) == known->second.hash)) {
      return name + " does not match its checksum";
    }
  }
  return {};
}

std::string KernelCache::check_files(const std::string& name, Program* program) {
  *program = {};
  program->began = now();
  if (!read_sums(name, program)) {
    program->sums.clear();
    program->folder.clear();
    program->began = next_tick();
    return {};
  }
  // What is missing is made again by the driver, and not of the same bytes.
  std::error_code ignored;
  std::erase_if(program->sums,
                [&](const auto& sum) { return !fs::exists(folder_ / program->folder / sum.first, ignored); });
  Known& known = known_here();
  MutexLock known_lock(known.mutex);
  if (known.checked.count((own_ / name).string()) != 0) return {};
  std::string wrong = first_mismatch(*program);
  if (wrong.empty()) {
    known.checked.insert((own_ / name).string());
    return {};
  }
  wrong = (folder_ / program->folder / wrong).string();
  remove(name, program);
  program->began = now();
  return wrong;
}

// Two processes that compile a program at the same time would put different bytes in one place, one after the other:
// the driver's bitcode has the name of its temporary file in it. What the first has written would no longer match its
// checksum. So one of them compiles, and the other one finds the bitcode there.
KernelCache::Checked KernelCache::check(const Key128& key) {
  const std::string name = hex_text(key);
  Checked checked;
  fs::path turns;
  {
    MutexLock lock(mutex_);
    if (!start()) return checked;
    Program& program = programs_[name];
    checked.wrong = check_files(name, &program);
    if (program.sums.count(kBitcode) != 0) return checked;
    turns = own_ / kTurns;
  }
  checked.turn = Turn(take_turn(turns, key, kMostWait));  // without the mutex: who has the turn may need it
  MutexLock lock(mutex_);
  std::string wrong = check_files(name, &programs_[name]);
  if (!wrong.empty()) checked.wrong = std::move(wrong);
  return checked;
}

KernelCache::Turn::~Turn() {
  if (file_ >= 0) ::close(file_);
}

// The folder that the driver touched since the build began; empty if there are several, of other processes.
std::string KernelCache::find_folder(const Program& program) const {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator first(folder_, error), end; !error && first != end; first.increment(error)) {
    const std::string letters = first->path().filename().string();
    DIR* const folder = letters.size() == 2 ? ::opendir(first->path().c_str()) : nullptr;
    if (folder == nullptr) continue;
    while (const dirent* const entry = ::readdir(folder)) {
      struct stat info {};
      const std::string rest = entry->d_name;
      if (rest.front() == '.' ||
          ::fstatat(::dirfd(folder), (rest + "/last_accessed").c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
          nanoseconds(info.st_mtim) < program.began)
        continue;
      found.push_back(letters + "/" + rest);
    }
    ::closedir(folder);
  }
  // Those of the builds of this process just before are not meant.
  if (found.size() > 1)
    for (const auto& [key, known] : programs_) std::erase(found, known.folder);
  return found.size() == 1 ? found.front() : "";
}

void KernelCache::note_built(const Key128& key) {
  MutexLock lock(mutex_);
  if (!start()) return;
  Program& program = programs_[hex_text(key)];
  if (!program.folder.empty()) {
    struct stat info {};
    const fs::path touched = folder_ / program.folder / "last_accessed";
    if (::stat(touched.c_str(), &info) == 0 && nanoseconds(info.st_mtim) >= program.began) return;
    program.folder.clear();
    program.sums.clear();
  }
  Known& known = known_here();
  MutexLock known_lock(known.mutex);
  std::string& folder = known.folders[(own_ / hex_text(key)).string()];
  std::error_code ignored;
  if ((folder.empty() || !fs::exists(folder_ / folder, ignored)) && known.searched < kMostSearch) {
    const auto start = std::chrono::steady_clock::now();
    folder = find_folder(program);
    known.searched += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  program.folder = folder;
}

bool KernelCache::is_on() {
  MutexLock lock(mutex_);
  return start();
}

bool KernelCache::has_program(const Key128& key) {
  MutexLock lock(mutex_);
  Program program;
  return start() && read_sums(hex_text(key), &program) && program.sums.count(kBitcode) != 0;
}

// PoCL keeps it as FOLDER/ENTRY/X-Y-Z-.../ENTRY.so, X to Z being the group.
bool KernelCache::lacks_kernel(const Key128& key, const std::string& entry, const std::size_t (&local)[3]) {
  MutexLock lock(mutex_);
  const auto program = start() ? programs_.find(hex_text(key)) : programs_.end();
  if (program == programs_.end() || program->second.folder.empty()) return false;
  const std::string group =
      std::to_string(local[0]) + "-" + std::to_string(local[1]) + "-" + std::to_string(local[2]) + "-";
  std::error_code error;
  for (fs::directory_iterator each(folder_ / program->second.folder / entry, error), end; !error && each != end;
       each.increment(error)) {
    std::error_code ignored;
    if (each->path().filename().string().starts_with(group) && fs::exists(each->path() / (entry + ".so"), ignored))
      return false;
  }
  return true;
}

void KernelCache::write_marker(const std::string& line) {
  if (marker_ < 0) {
    std::string path = (own_ / (std::string(kMarker) + "XXXXXX")).string();
    const Descriptor gate(::open((own_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (gate.value < 0 || ::flock(gate.value, LOCK_EX) != 0) return;  // nobody sees it without its lock
    marker_ = ::mkostemp(path.data(), O_CLOEXEC | O_APPEND);
    if (marker_ < 0) return;
    marker_path_ = path;
    ::flock(marker_, LOCK_EX | LOCK_NB);
  }
  static_cast<void>(!::write(marker_, line.data(), line.size()));
}

bool KernelCache::note_use(const Key128& key, const std::string& entry) {
  MutexLock lock(mutex_);
  if (!start()) return false;
  const std::string name = hex_text(key);
  Program& program = programs_[name];
  if (program.folder.empty()) return false;
  const std::string within = entry + "/";
  const auto known = program.sums.lower_bound(within);
  if (known != program.sums.end() && known->first.starts_with(within)) return false;
  uses_.fetch_add(1, std::memory_order_release);
  is_unsettled_.store(true, std::memory_order_release);
  if (program.is_in_marker) return true;
  program.is_in_marker = true;
  write_marker(name + " " + program.folder + "\n");
  return true;
}

void KernelCache::add_sums(const std::string& name, Program* program) const {
  bool has_more = false;
  for (const std::string& file : files_of(folder_ / program->folder)) {
    if (program->sums.count(file) != 0) continue;
    const std::optional<std::string> bytes = bytes_of(folder_ / program->folder / file);
    if (!bytes || (is_object(file) && !is_whole(*bytes))) continue;
    program->sums[file] = {bytes->size(), hash_of(*bytes)};
    has_more = true;
  }
  if (has_more) write_sums(name, *program);
}

void KernelCache::settle() {
  MutexLock lock(mutex_);
  if (!is_on_ || (marker_ < 0 && !marker_path_.empty())) return;
  for (auto& [name, program] : programs_) {
    program.is_in_marker = false;
    if (!program.folder.empty()) add_sums(name, &program);
  }
  is_unsettled_.store(false, std::memory_order_release);
  drop_marker();
}

void KernelCache::drop_marker() {
  if (marker_ < 0) return;
  ::unlink(marker_path_.c_str());
  ::close(marker_);
  marker_ = -1;
  marker_path_.clear();
}

void KernelCache::keep_marker() {
  MutexLock lock(mutex_);
  if (marker_ >= 0) ::close(marker_);
  marker_ = -1;  // with its path, so that nothing settles any more
  if (marker_path_.empty()) marker_path_ = "kept";
}

}  // namespace samebytes::detail
