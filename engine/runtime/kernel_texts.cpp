#include "runtime/kernel_texts.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "core/embedded.h"
#include "runtime/devices.h"
#include "samebytes/error.h"

namespace samebytes::detail {

namespace {

using Texts = std::map<std::string, std::string>;  // by name, "cpu/softmax.cl"

Texts read_folder(const std::string& folder) {
  Texts texts;
  std::error_code failed;
  std::filesystem::recursive_directory_iterator files(folder, failed);
  if (failed)
    throw IoError("SAMEBYTES_KERNEL_DIR: the folder " + folder + " cannot be read: " + failed.message(), folder);
  for (const auto& file : files) {
    if (!file.is_regular_file()) continue;
    std::ifstream stream(file.path(), std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    texts[std::filesystem::relative(file.path(), folder).generic_string()] = text.str();
  }
  return texts;
}

Texts all_texts() {
  const std::string folder = environment("SAMEBYTES_KERNEL_DIR");
  if (!folder.empty()) return read_folder(folder);
  Texts texts;
  for (const EmbeddedFile& file : embedded_kernels()) texts.emplace(file.name, file.bytes);
  return texts;
}

// Replaces each line #include "name" by the file, once per text. As in C++, names are relative to cl/
// ("shared/conv.h").
class Inclusion {
 public:
  explicit Inclusion(const Texts& texts) : texts_(texts) {}

  bool has(const std::string& name) const { return done_.count(name) != 0; }
  void append_to(std::string* text, const std::string& name, const std::string& part) {
    *text += "#line 1 \"" + name + "\"\n";
    std::istringstream lines(part);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      const auto included = texts_.find(included_by(line));
      if (included == texts_.end()) {
        *text += line + "\n";
        continue;
      }
      if (done_.insert(included->first).second) append_to(text, included->first, included->second);
      *text += "#line " + std::to_string(number + 1) + " \"" + name + "\"\n";
    }
  }

 private:
  static std::string included_by(const std::string& line) {
    const std::string mark = "#include \"";
    return line.rfind(mark, 0) == 0 && line.back() == '"' ? line.substr(mark.size(), line.size() - mark.size() - 1)
                                                          : "";
  }

  const Texts& texts_;
  std::set<std::string> done_;
};

std::string common_of(const Texts& texts, Inclusion& inclusion) {
  std::string text;
  const std::string first = "common/common.clh";
  if (auto found = texts.find(first); found != texts.end()) inclusion.append_to(&text, first, found->second);
  for (const auto& [name, part] : texts)
    if (name.rfind("common/", 0) == 0 && name != first && !inclusion.has(name)) inclusion.append_to(&text, name, part);
  return text;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// "convolution" of a line "// Program: convolution".
std::string program_of(const std::string& text) {
  const std::string mark = "// Program: ";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.rfind(mark, 0) == 0) {
      std::string program;
      std::istringstream(line.substr(mark.size())) >> program;
      return program;
    }
  return "others";
}

bool has_stored_arrays(const std::string& text) {
  return text.find("(const stored,") != std::string::npos || text.find("(stored,") != std::string::npos;
}

// The value of `#define name value` in a text; nullopt if there is none.
std::optional<std::string> definition_in(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string hash, word;
    words >> hash;
    if (hash == "#") {
      words >> word;
      hash += word;
    }
    if (hash != "#define" || !(words >> word) || word != name) continue;
    std::string rest;
    std::getline(words, rest);
    if (const auto comment = rest.find("//"); comment != std::string::npos) rest.resize(comment);
    if (const auto comment = rest.find("/*"); comment != std::string::npos) rest.resize(comment);
    return rest;
  }
  return std::nullopt;
}

// Evaluates `value` as an expression of integers and defines.
class Expression {
 public:
  Expression(const std::string& text, const std::string& file, const Texts& chosen, int vector_width, int depth = 0)
      : text_(text), file_(file), chosen_(chosen), vector_width_(vector_width), depth_(depth) {}

  std::optional<std::int64_t> read() {
    auto value = sum();
    skip();
    return is_bad_ || place_ != text_.size() ? std::nullopt : value;
  }

 private:
  void skip() {
    while (place_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[place_]))) ++place_;
  }
  bool take(char c) {
    skip();
    if (place_ >= text_.size() || text_[place_] != c) return false;
    ++place_;
    return true;
  }
  std::optional<std::int64_t> sum() {
    auto left = product();
    while (left && !is_bad_) {
      const bool plus = take('+');
      if (!plus && !take('-')) break;
      const auto right = product();
      if (!right) return bad();
      left = plus ? *left + *right : *left - *right;
    }
    return left;
  }
  std::optional<std::int64_t> product() {
    auto left = factor();
    while (left && !is_bad_) {
      const bool times = take('*');
      if (!times && !take('/')) break;
      const auto right = factor();
      if (!right || (!times && *right == 0)) return bad();
      left = times ? *left * *right : *left / *right;
    }
    return left;
  }
  std::optional<std::int64_t> factor() {
    if (take('(')) {
      const auto value = sum();
      return take(')') ? value : bad();
    }
    skip();
    std::string word;
    while (place_ < text_.size() && is_word(text_[place_])) word += text_[place_++];
    if (word.empty()) return bad();
    if (std::isdigit(static_cast<unsigned char>(word[0]))) return std::stoll(word, nullptr, 0);
    if (word == "VW") return vector_width_;
    constexpr int kDeepest = 16;  // stops defines that refer to each other in a circle
    const auto given = chosen_.find(word);
    const auto text = given != chosen_.end() ? given->second : definition_in(file_, word);
    if (!text || depth_ == kDeepest) return bad();
    const auto value = Expression(*text, file_, chosen_, vector_width_, depth_ + 1).read();
    return value ? value : bad();
  }
  std::nullopt_t bad() {
    is_bad_ = true;
    return std::nullopt;
  }

  const std::string text_;
  const std::string& file_;
  const Texts& chosen_;
  int vector_width_;
  int depth_;
  std::size_t place_ = 0;
  bool is_bad_ = false;
};

constexpr std::string_view kAnyBuiltin = "#define SAMEBYTES_ANY_BUILTIN\n";
std::atomic<bool> own_builtins_are_enough{true};

}  // namespace

std::string_view builtins_option(const std::string& text) {
  const bool are_own = own_builtins_are_enough && text.rfind(kAnyBuiltin, 0) != 0;
  return are_own ? " -D_OPENCL_H_ -DSAMEBYTES_BUILTINS" : "";  // the guard of PoCL's, and ours
}

std::string with_any_builtin(const std::string& text) { return std::string(kAnyBuiltin) + text; }

void give_up_own_builtins() { own_builtins_are_enough = false; }

bool are_own_builtins_enough() { return own_builtins_are_enough; }

std::string stem_of(const std::string& file, Personality personality) {
  const std::string folder = std::string(samebytes::name_of(personality)) + "/", ending = ".cl";
  if (file.rfind(folder, 0) != 0 || file.size() <= folder.size() + ending.size() || !file.ends_with(ending)) return {};
  return file.substr(folder.size(), file.size() - folder.size() - ending.size());
}

std::string common_text() {
  const Texts texts = all_texts();
  Inclusion inclusion(texts);
  return common_of(texts, inclusion);
}

std::string library_text(Personality personality, const std::set<std::string>& stems, bool stored_only) {
  const Texts texts = all_texts();
  Inclusion inclusion(texts);
  std::string text = common_of(texts, inclusion);
  for (const auto& [name, part] : texts)
    if (stems.count(stem_of(name, personality)) != 0 && (!stored_only || has_stored_arrays(part)))
      inclusion.append_to(&text, name, part);
  return text;
}

KernelFiles kernel_files(Personality personality) {
  KernelFiles files;
  for (const auto& [name, part] : all_texts())
    if (const std::string stem = stem_of(name, personality); !stem.empty()) files.emplace(stem, program_of(part));
  return files;
}

std::string file_of_entry(const KernelFiles& files, const std::string& entry) {
  std::string longest;
  for (const auto& [stem, program] : files) {
    const bool starts = entry == stem || entry.rfind(stem + "_", 0) == 0;
    if (starts && stem.size() > longest.size()) longest = stem;
  }
  return longest;
}

std::int64_t kernel_constant(Personality personality, int vector_width, std::string_view stem, std::string_view name,
                             const Texts& chosen) {
  const Texts texts = all_texts();
  const std::string file = std::string(name_of(personality)) + "/" + std::string(stem) + ".cl";
  auto found = texts.find(file);
  if (found == texts.end()) throw ArgumentError("kernel constant: there is no kernel file " + file);
  Inclusion inclusion(texts);
  std::string text;
  inclusion.append_to(&text, file, found->second);
  text += common_of(texts, inclusion);
  for (const std::string& wanted :
       {chosen.count(std::string(name)) ? std::string(name) : std::string(name) + "_VW" + std::to_string(vector_width),
        std::string(name)}) {
    const auto value = definition_in(text, wanted);
    if (!value) continue;
    if (const auto number = Expression(wanted, text, chosen, vector_width).read()) return *number;
    throw ArgumentError("kernel constant: " + wanted + " in " + file + " is no integer: '" + *value + "'");
  }
  throw ArgumentError("kernel constant: " + file + " does not define " + std::string(name));
}

std::string with_files_of(std::string log, const std::string& text) {
  const std::string whole = "<kernel>:", mark = "#line ";
  if (log.find(whole) == std::string::npos) return log;
  std::vector<std::string> places = {""};  // of each line of the text: file and line
  std::string file;
  int number = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    places.push_back(file + ":" + std::to_string(++number));
    const std::size_t name = line.find('"');
    if (line.rfind(mark, 0) != 0 || name == std::string::npos) continue;
    file = line.substr(name + 1, line.rfind('"') - name - 1);
    number = std::atoi(line.c_str() + mark.size()) - 1;
  }
  for (std::size_t at = log.find(whole); at != std::string::npos; at = log.find(whole, at + 1)) {
    std::size_t end = at + whole.size();
    while (end < log.size() && std::isdigit(static_cast<unsigned char>(log[end]))) ++end;
    const long line = std::atol(log.c_str() + at + whole.size());
    if (line < 1 || line >= static_cast<long>(places.size()) || places[static_cast<std::size_t>(line)][0] == ':')
      continue;
    log.replace(at, end - at, places[static_cast<std::size_t>(line)]);
  }
  return log;
}

std::string first_file_in_log(const std::string& log, const std::string& otherwise) {
  // "cpu/softmax.cl:12:3: error: ..." or, from PoCL, "error: cpu/softmax.cl:12:3: ..."; warnings about other files may
  // come first.
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("error") == std::string::npos) continue;
    for (std::size_t colon = line.find(':'); colon != std::string::npos; colon = line.find(':', colon + 1)) {
      if (colon + 1 >= line.size() || !std::isdigit(static_cast<unsigned char>(line[colon + 1]))) continue;
      std::size_t start = 0;
      if (line.rfind("error: ", 0) == 0) start = std::string("error: ").size();
      if (start < colon) return line.substr(start, colon - start);
    }
  }
  return otherwise;
}

}  // namespace samebytes::detail
