#include "samebytes/data/fetch.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "core/files.h"
#include "core/io_error.h"
#include "data/archive.h"
#include "samebytes/data/cifar.h"
#include "samebytes/data/sets.h"
#include "samebytes/io/files.h"

extern char** environ;

namespace samebytes::data {
namespace {

namespace fs = std::filesystem;

using Counts = std::pair<std::int64_t, std::int64_t>;

Counts counts_of(const Split& split) { return {split.train->size(), split.test->size()}; }

struct Row {
  KnownSet set;
  Counts (*check)(const std::string& path);  // throws IoError
};

Counts check_mnist(const std::string& folder) { return counts_of(mnist(folder, {.raw = true})); }

const std::vector<std::string> kMnistFiles = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                              "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      {{"mnist",
        "handwritten digits, 60 000 and 10 000 of 28 x 28, 12 MB",
        kMnistFiles,
        {"https://ossci-datasets.s3.amazonaws.com/mnist", "https://storage.googleapis.com/cvdf-datasets/mnist"},
        {"mlp", "cnn"}},
       check_mnist},
      {{"fashion_mnist",
        "clothing, 60 000 and 10 000 of 28 x 28, 31 MB",
        kMnistFiles,
        {"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"},
        {"mlp", "cnn"}},
       check_mnist},
      {{"kmnist",
        "Japanese characters, 60 000 and 10 000 of 28 x 28, 21 MB",
        kMnistFiles,
        {"http://codh.rois.ac.jp/kmnist/dataset/kmnist"},
        {"mlp", "cnn"}},
       check_mnist},
      {{"cifar10",
        "colour images of 10 classes, 50 000 and 10 000 of 32 x 32, 170 MB",
        {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
         "test_batch.bin"},
        {"https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"},
        {"resnet20"}},
       [](const std::string& folder) { return counts_of(cifar10(folder, {.raw = true})); }},
      {{"cifar100",
        "colour images of 100 classes, 50 000 and 10 000 of 32 x 32, 170 MB",
        {"train.bin", "test.bin", "fine_label_names.txt"},
        {"https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"},
        {}},
       [](const std::string& folder) { return counts_of(cifar100(folder, {.raw = true})); }},
      {{"tinyshakespeare",
        "plays of Shakespeare, 1.1 MB of text",
        {"input.txt"},
        {"https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare"},
        {"gpt"}},
       [](const std::string& folder) { return Counts(io::read_file(folder + "/input.txt").size(), 0); }},
  };
  return table;
}

const Row& row_of(const std::string& name) {
  std::string names;
  for (const Row& row : rows()) {
    if (row.set.name == name) return row;
    names += (names.empty() ? "" : ", ") + row.set.name;
  }
  throw ArgumentError("there is no data set " + name + "; there are " + names);
}

bool is_address(const std::string& text) { return text.find("://") != text.npos; }

bool is_archive(const std::string& name) {
  for (const char* end : {".tar", ".tar.gz", ".tgz", ".zip"})
    if (name.ends_with(end)) return true;
  return false;
}

std::string text_of_file(const fs::path& path) {
  std::ifstream in(path);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// Its exit status, 127 where there is no such program; what it says goes into the file `said`.
int run_program(std::vector<std::string> words, const fs::path& said) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = -1;
  const int error = posix_spawnp(&child, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return 127;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

// Empty where it came; else why not.
std::string downloaded(const std::string& address, const fs::path& to) {
  const fs::path said = to.string() + ".said";
  int status = run_program({"curl", "--fail", "--location", "--silent", "--show-error", "--proto",
                            "=http,https,ftp,file", "--output", to.string(), "--url", address},
                           said);
  if (status == 127) status = run_program({"wget", "-q", "-O", to.string(), "--", address}, said);
  std::string why = text_of_file(said);
  std::error_code ignored;
  fs::remove(said, ignored);
  if (status == 0) return {};
  fs::remove(to, ignored);
  if (status == 127) return "neither the program curl nor wget is installed";
  return why.empty() ? "status " + std::to_string(status) : why;
}

bool is_named(const fs::path& path, const std::string& file) {
  return path.filename() == file || path.filename() == file + ".gz";
}

void take_from_archive(const KnownSet& set, const std::string& path, const fs::path& folder) {
  for (const detail::ArchiveMember& member : detail::read_archive("fetch", path))
    for (const std::string& file : set.files)
      if (is_named(member.name, file))
        io::write_file((folder / fs::path(member.name).filename()).string(), std::span<const std::byte>(member.bytes));
}

void take_from_folder(const KnownSet& set, const std::string& from, const fs::path& folder) {
  constexpr auto kSkipped = fs::directory_options::skip_permission_denied;
  constexpr int kDeepest = 8;  // folders in folders
  std::error_code error, ignored;
  for (fs::recursive_directory_iterator entry(from, kSkipped, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry.depth() >= kDeepest) entry.disable_recursion_pending();
    for (const std::string& file : set.files)
      if (is_named(entry->path(), file) && entry->is_regular_file(ignored))
        fs::copy_file(entry->path(), folder / entry->path().filename(), fs::copy_options::skip_existing);
  }
}

void take_from_address(const KnownSet& set, std::string address, const fs::path& folder) {
  if (is_archive(address)) {
    const fs::path archive = folder / ("archive" + fs::path(address).extension().string());
    if (const std::string why = downloaded(address, archive); !why.empty())
      throw IoError("fetch: " + address + ": " + why, address);
    take_from_archive(set, archive.string(), folder);
    fs::remove(archive);
    return;
  }
  while (address.ends_with("/")) address.pop_back();
  for (const std::string& file : set.files) {
    std::string why = downloaded(address + "/" + file + ".gz", folder / (file + ".gz"));
    if (!why.empty()) why = downloaded(address + "/" + file, folder / file);
    if (!why.empty()) throw IoError("fetch: " + address + "/" + file + ": " + why, address);
  }
}

// A folder that vanishes with its owner unless it was renamed.
struct PartialFolder {
  fs::path path;
  std::vector<fs::path> made;  // the folders above it that were not there, the innermost first
  explicit PartialFolder(const fs::path& folder) : path(detail::temporary_name(folder.string())) {
    std::error_code ignored;
    for (fs::path above = path.parent_path(); !above.empty() && !fs::exists(above, ignored);
         above = above.parent_path())
      made.push_back(above);
    if (!path.parent_path().empty()) fs::create_directories(path.parent_path());
    if (!fs::create_directory(path)) throw IoError("fetch: " + path.string() + " exists already", path.string());
  }
  ~PartialFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
    for (const fs::path& one : made) fs::remove(one, ignored);  // where it is empty
  }
};

}  // namespace

const std::vector<KnownSet>& known_sets() {
  static const std::vector<KnownSet> sets = [] {
    std::vector<KnownSet> result;
    for (const Row& row : rows()) result.push_back(row.set);
    return result;
  }();
  return sets;
}

const KnownSet& known_set(const std::string& name) { return row_of(name).set; }

FetchedSet fetch(const std::string& name, const std::string& from, const std::string& folder) {
  const Row& row = row_of(name);
  std::error_code ignored;
  if (fs::exists(folder, ignored) && !fs::is_empty(folder, ignored))
    throw ArgumentError("fetch: " + folder + " exists and is not empty; name another folder, or remove it");
  try {
    const PartialFolder partial(fs::path(folder).lexically_normal());
    constexpr std::string_view kLocal = "file://";
    const std::string place = from.starts_with(kLocal) ? from.substr(kLocal.size()) : from;
    if (is_address(place))
      take_from_address(row.set, place, partial.path);
    else if (is_archive(place))
      take_from_archive(row.set, place, partial.path);
    else if (fs::is_directory(place, ignored))
      take_from_folder(row.set, place, partial.path);
    else
      detail::throw_io("fetch", place, -1, "a folder, an archive or an address", "none");
    for (const std::string& file : row.set.files)
      if (!fs::exists(partial.path / file) && !fs::exists(partial.path / (file + ".gz")))
        detail::throw_io("fetch", from, -1, "the file " + file + " of " + name + ", or the same with .gz", "neither");
    const auto [training, test] = row.check(partial.path.string());
    if (fs::exists(folder, ignored)) fs::remove(folder);
    fs::rename(partial.path, folder);
    const std::vector<std::string>& files = row.set.files;
    return {files.size() == 1 ? (fs::path(folder) / files[0]).string() : folder, training, test};
  } catch (const fs::filesystem_error& error) {
    throw IoError(std::string("fetch: ") + error.what(), folder);
  }
}

}  // namespace samebytes::data
