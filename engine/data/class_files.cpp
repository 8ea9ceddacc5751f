#include "data/class_files.h"

#include <algorithm>
#include <filesystem>

#include "core/io_error.h"

namespace samebytes::detail {
namespace {

namespace fs = std::filesystem;

std::string extension_of(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return extension;
}

// The entries of a folder that pass the test, sorted.
template <class Iterator, class Test>
std::vector<fs::path> sorted_entries(const std::string& reader, const fs::path& folder, Test test) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (Iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (test(*entry)) paths.push_back(entry->path());
  if (error)
    throw IoError(reader + ": " + folder.string() + ": expected a folder: " + error.message(), folder.string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

ClassFiles find_class_files(const std::string& reader, const std::string& folder,
                            const std::vector<std::string_view>& extensions, const std::string& what) {
  const auto is_folder = [](const fs::directory_entry& entry) { return entry.is_directory(); };
  const auto is_file = [&](const fs::directory_entry& entry) {
    return entry.is_regular_file() &&
           std::find(extensions.begin(), extensions.end(), extension_of(entry.path())) != extensions.end();
  };
  const std::vector<fs::path> classes = sorted_entries<fs::directory_iterator>(reader, folder, is_folder);
  if (classes.empty()) throw_io(reader, folder, -1, "a subfolder for each class", "none");
  ClassFiles result;
  for (const fs::path& one : classes) {
    const std::vector<fs::path> files = sorted_entries<fs::recursive_directory_iterator>(reader, one, is_file);
    if (files.empty()) throw_io(reader, one.string(), -1, what, "none");
    for (const fs::path& file : files) {
      result.paths.push_back(file.string());
      result.labels.push_back(static_cast<std::int32_t>(result.classes.size()));
    }
    result.classes.push_back(one.filename().string());
  }
  return result;
}

}  // namespace samebytes::detail
