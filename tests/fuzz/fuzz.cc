// libFuzzer over a reader: fuzz TARGET [SECONDS]. Begins with whole files and with those that once went wrong, goes on
// where the last search stopped (BUILD/fuzzing/TARGET/corpus), and ends at the first fault: a crash, undefined
// behaviour, an exception that is no samebytes::Error, ten seconds without an end, or more memory than the file is
// worth. The file that did it is BUILD/fuzzing/TARGET/fault-*; fuzz TARGET FILE reads one again. Without SECONDS:
// $SAMEBYTES_FUZZ_SECONDS, or 3.
#include <sanitizer/allocator_interface.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>

#include "fuzz/target.h"
#include "samebytes/error.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

namespace fs = std::filesystem;

const Target* chosen = nullptr;

// Bytes that the program holds, and the most since begin().
class Held {
 public:
  static void begin() { peak_ = now_.load(); }
  static std::int64_t now() { return now_; }
  static std::int64_t peak() { return peak_; }
  static void watch() {
    __sanitizer_install_malloc_and_free_hooks(
        [](const volatile void*, std::size_t bytes) { add(static_cast<std::int64_t>(bytes)); },
        [](const volatile void* place) {
          if (place != nullptr)
            add(-static_cast<std::int64_t>(__sanitizer_get_allocated_size(const_cast<void*>(place))));
        });
  }

 private:
  static void add(std::int64_t bytes) {
    const std::int64_t held = now_ += bytes;
    std::int64_t most = peak_;
    while (held > most && !peak_.compare_exchange_weak(most, held)) {
    }
  }
  static inline std::atomic<std::int64_t> now_{0}, peak_{0};
};

std::string dictionary_of(const Target& target) {
  std::string text;
  for (const std::string& word : target.words) {
    text += '"';
    for (const char c : word) {
      char code[8];
      std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned char>(c));
      text += std::isalnum(static_cast<unsigned char>(c)) != 0 ? std::string(1, c) : code;
    }
    text += "\"\n";
  }
  return text;
}

[[noreturn]] void leave(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(2);
}

// The driver's compiler has signal handlers of its own, so libFuzzer's may not keep a file.
void keep_fault(const std::string& kind, std::string_view file) {
  testing::put((fs::path(testing::build_folder()) / "fuzzing" / chosen->name / ("fault-" + kind)).string(), file);
}

// What libFuzzer is told: the words of the command line in its own terms.
std::vector<std::string> words_for(const std::string& program, const std::vector<std::string>& given) {
  std::string names;
  for (const Target& target : targets()) {
    names += " " + target.name;
    if (!given.empty() && target.name == given[0]) chosen = &target;
  }
  if (chosen == nullptr || given.size() > 2) leave("fuzz TARGET [SECONDS | FILE], TARGET is one of" + names);
  const fs::path folder = fs::path(testing::build_folder()) / "fuzzing" / chosen->name;
  const fs::path seeds = folder / "seeds", corpus = folder / "corpus";
  const fs::path found = fs::path(testing::source_folder()) / "tests/fuzz/found" / chosen->name;
  fs::create_directories(seeds);
  fs::create_directories(corpus);
  const char* const seconds = std::getenv("SAMEBYTES_FUZZ_SECONDS");
  std::string last = given.size() > 1 ? given[1] : seconds != nullptr ? seconds : "3";
  // A leak is what the drivers keep; the readers' own are the matter of the tests under the leak checker.
  std::vector<std::string> words{program,
                                 "-timeout=10",
                                 "-rss_limit_mb=4096",
                                 "-verbosity=1",
                                 "-detect_leaks=0",
                                 "-print_final_stats=1",
                                 "-max_len=16384",
                                 "-artifact_prefix=" + (folder / "fault-").string()};
  if (fs::exists(last)) {
    words.push_back(last);
    return words;
  }
  if (last.empty() || !std::all_of(last.begin(), last.end(), [](unsigned char c) { return std::isdigit(c) != 0; }))
    leave("fuzz: '" + last + "' is neither a file nor a number of seconds");
  chosen->make(seeds.string());
  if (!chosen->words.empty()) {
    testing::put((folder / "words").string(), dictionary_of(*chosen));
    words.push_back("-dict=" + (folder / "words").string());
  }
  words.push_back("-max_total_time=" + last);
  words.push_back(corpus.string());
  words.push_back(seeds.string());
  if (fs::exists(found)) words.push_back(found.string());
  return words;
}

}  // namespace
}  // namespace samebytes::fuzz

// What drivers keep at the end of a process is not the reader's (sanitizer/lsan_interface.h).
extern "C" int __lsan_is_turned_off() { return 1; }  // NOLINT(bugprone-reserved-identifier)

extern "C" int LLVMFuzzerInitialize(int* count, char*** words) {
  using namespace samebytes::fuzz;
  static std::vector<std::string> kept = words_for((*words)[0], {*words + 1, *words + *count});
  static std::vector<char*> pointers;
  for (std::string& word : kept) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  *count = static_cast<int>(kept.size());
  *words = pointers.data();
  // What the first file of a process makes, engine and tables, is not the file's.
  const samebytes::testing::TemporaryFolder folder, whole;
  chosen->make(whole.string());
  for (const auto& entry : std::filesystem::directory_iterator(whole.string())) {
    const std::string path = folder / chosen->file;
    samebytes::testing::put(path, samebytes::testing::get(entry.path().string()));
    chosen->read(path);
  }
  Held::watch();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace samebytes::fuzz;
  static const samebytes::testing::TemporaryFolder folder;
  static const std::string path = folder / chosen->file;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  samebytes::testing::put(path, file);
  const auto took = [&] {
    Held::begin();
    const std::int64_t before = Held::now();
    try {
      chosen->read(path);
    } catch (const samebytes::Error&) {
    } catch (const std::exception& other) {
      keep_fault("exception", file);
      std::fprintf(stderr, "%s: an exception that is no samebytes::Error: %s\n", chosen->name.c_str(), other.what());
      std::abort();
    }
    return Held::peak() - before;
  };
  const auto allowed = static_cast<std::int64_t>(growth_of(*chosen, file) * static_cast<double>(size)) +
                       static_cast<std::int64_t>(kRoom);
  // The first file that needs a kernel has the driver compile it, in this process.
  if (took() <= allowed) return 0;
  if (const std::int64_t again = took(); again > allowed) {
    std::fprintf(stderr, "%s: a file of %zu bytes took %lld bytes of memory, expected at most %lld\n",
                 chosen->name.c_str(), size, static_cast<long long>(again), static_cast<long long>(allowed));
    keep_fault("memory", file);
    std::abort();
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  using samebytes::fuzz::chosen;
  if (!chosen->change || seed % 4 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string made = chosen->change({reinterpret_cast<const char*>(data), size}, seed);
  if (made.empty() || made.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(made.begin(), made.end(), data);
  return made.size();
}
