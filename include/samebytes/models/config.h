// The config.json of a published model: typed reading of a JSON object, with bounds, since anybody may have written it.
// A fault is an IoError with file, key, what was expected and what came. A Config is a value; copies share the text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace samebytes::models {

class Config {
 public:
  // Reads a file of at most 16 MiB. Throws IoError for a missing file, one that is no JSON object, and deeper nesting
  // than 64 levels.
  static Config read(const std::string& path);
  // The same for a text; `path` stands for its file in errors.
  static Config parse(const std::string& path, std::string_view text);

  // A key that is missing or null is not there.
  bool has(const std::string& key) const;
  // A whole number from 0 to 2^27, which all sizes are; the fallback, as it is, where the key is not there. Throws
  // IoError without a fallback, and for other values. size() wants 1 or more.
  std::int64_t integer(const std::string& key, std::optional<std::int64_t> fallback = {}) const;
  std::int64_t size(const std::string& key, std::optional<std::int64_t> fallback = {}) const;
  double number(const std::string& key, std::optional<double> fallback = {}) const;
  bool flag(const std::string& key, bool fallback) const;
  std::string text(const std::string& key, std::optional<std::string> fallback = {}) const;
  std::vector<double> numbers(const std::string& key) const;     // a list or one number; empty if it is not there
  std::vector<std::string> texts(const std::string& key) const;  // empty if it is not there
  Config part(const std::string& key) const;                     // an object; an empty one if it is not there
  std::size_t count(const std::string& key) const;               // entries of a list or an object; 0 if it is not there
  std::vector<std::string> keys() const;                         // in the text's order

  const std::string& path() const;
  std::string to_text() const;  // JSON, indented
  // The same with this key set to a text: what save_pretrained() changes.
  Config with(const std::string& key, const std::string& value) const;
  [[noreturn]] void fail(const std::string& key, const std::string& expected, const std::string& found) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace samebytes::models
