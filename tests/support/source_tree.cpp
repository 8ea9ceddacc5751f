#include "support/source_tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace samebytes::testing {
namespace {

namespace fs = std::filesystem;

fs::path top() { return SAMEBYTES_SOURCE_DIR; }

}  // namespace

std::string read_text(const std::string& path) {
  std::ifstream file(top() / path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool exists(const std::string& path) { return fs::exists(top() / path); }

std::vector<SourceFile> source_files(const std::vector<std::string>& folders, const std::vector<std::string>& endings) {
  std::vector<SourceFile> files;
  for (const auto& folder : folders) {
    if (!exists(folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(top() / folder)) {
      const std::string name = entry.path().filename().string();
      const bool wanted = std::any_of(endings.begin(), endings.end(), [&](const auto& e) { return name.ends_with(e); });
      if (!entry.is_regular_file() || !wanted) continue;
      const std::string path = fs::relative(entry.path(), top()).generic_string();
      files.push_back({path, read_text(path)});
    }
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

std::string without_comments(std::string_view text) {
  std::string result(text);
  for (std::size_t i = 0; i + 1 < result.size(); ++i) {
    if (result[i] != '/') continue;
    if (result[i + 1] == '/') {
      while (i < result.size() && result[i] != '\n') result[i++] = ' ';
    } else if (result[i + 1] == '*') {
      const std::size_t end = std::min(result.find("*/", i + 2), result.size() - 2) + 2;
      for (; i < end; ++i) {
        if (result[i] != '\n') result[i] = ' ';
      }
      --i;
    }
  }
  return result;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string result;
  for (const auto& line : lines) result += "  " + line + "\n";
  return result;
}

}  // namespace samebytes::testing
