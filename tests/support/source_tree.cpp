#include "support/source_tree.h"
#include "support/places.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

namespace samebytes::testing {
namespace {

namespace fs = std::filesystem;

fs::path top() { return source_folder(); }

std::string squeezed(const std::string& text) {
  static const std::regex blanks("[\\s\\\\]+");  // also the backslashes that continue a macro
  static const std::regex around("\\s*([,()*])\\s*");
  const std::string result = std::regex_replace(std::regex_replace(text, blanks, " "), around, "$1");
  const std::size_t begin = result.find_first_not_of(' ');
  return begin == std::string::npos ? "" : result.substr(begin, result.find_last_not_of(' ') + 1 - begin);
}

// The text from the opening parenthesis at `open` to its partner, without both.
std::string inside(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return text.substr(open + 1, i - open - 1);
  }
  return "";
}

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

std::map<std::string, std::string> kernel_entries(const std::string& kernel_text) {
  static const std::regex attribute("__attribute__\\s*\\(\\((?:[^()]|\\([^()]*\\))*\\)\\)");
  static const std::regex entry("__kernel\\s+(?:\\w+\\s+)*?void\\s+(\\w+)\\s*\\(");
  const std::string text = std::regex_replace(without_comments(kernel_text), attribute, " ");
  std::map<std::string, std::string> entries;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), entry); it != std::sregex_iterator(); ++it) {
    auto open = static_cast<std::size_t>(it->position() + it->length() - 1);
    std::string name = (*it)[1];
    if (name == "SB_JOIN") {  // one of a family that a macro makes: SB_JOIN(concat_rows_, bits)(...)
      const std::string parts = inside(text, open);
      name = parts.substr(0, parts.find(',')) + "*";
      open = text.find('(', open + parts.size() + 2);
      if (open == std::string::npos) continue;
    }
    entries[name] = squeezed(inside(text, open));
  }
  return entries;
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
