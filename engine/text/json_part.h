// An object of a tokenizer.json with its place in the file: typed reading of its values, whose faults are an IoError
// with file, place, what was expected and what came.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"

namespace samebytes::detail {

class JsonPart {
 public:
  JsonPart(const nlohmann::json& json, const std::string& path, std::string place)
      : json_(&json), path_(&path), place_(std::move(place)) {
    if (!json.is_object()) fail_here("an object", json);
  }

  const nlohmann::json& json() const { return *json_; }
  const std::string& path() const { return *path_; }
  const std::string& place() const { return place_; }

  // None where the key is not there or null.
  const nlohmann::json* find(const char* key) const {
    const auto found = json_->find(key);
    return found == json_->end() || found->is_null() ? nullptr : &*found;
  }
  const nlohmann::json& array(const char* key) const {
    const nlohmann::json* found = find(key);
    if (found == nullptr || !found->is_array()) fail(key, "an array", found);
    return *found;
  }
  bool flag(const char* key, std::optional<bool> fallback = {}) const {
    const nlohmann::json* found = find(key);
    if (found == nullptr && fallback) return *fallback;
    if (found == nullptr || !found->is_boolean()) fail(key, "true or false", found);
    return found->get<bool>();
  }
  const std::string& text(const char* key) const {
    const nlohmann::json* found = find(key);
    if (found == nullptr || !found->is_string()) fail(key, "a text", found);
    return found->get_ref<const std::string&>();
  }
  std::string text(const char* key, const char* fallback) const { return find(key) == nullptr ? fallback : text(key); }
  std::int64_t integer(const char* key, std::int64_t least, std::int64_t most,
                       std::optional<std::int64_t> fallback = {}) const {
    const nlohmann::json* found = find(key);
    if (found == nullptr && fallback) return *fallback;
    const std::string expected = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    if (found == nullptr || !found->is_number_integer()) fail(key, expected, found);
    if (found->is_number_unsigned() &&
        found->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      fail(key, expected, found);
    const auto number = found->get<std::int64_t>();
    if (number < least || number > most) fail(key, expected, found);
    return number;
  }
  std::string type() const { return text("type"); }

  std::string place_of(const char* key) const { return place_.empty() ? key : place_ + "." + key; }
  JsonPart part(const char* key) const {
    const nlohmann::json* found = find(key);
    if (found == nullptr) fail(key, "an object", nullptr);
    return {*found, *path_, place_of(key)};
  }

  [[noreturn]] void fail(const char* key, const std::string& expected, const nlohmann::json* found) const {
    throw_io("tokenizer", *path_, -1, expected + " as " + place_of(key), found == nullptr ? "nothing" : shown(*found));
  }
  [[noreturn]] void fail_here(const std::string& expected, const nlohmann::json& found) const {
    throw_io("tokenizer", *path_, -1, expected + (place_.empty() ? "" : " as " + place_), shown(found));
  }
  // A kind of this part that we do not have.
  [[noreturn]] void fail_type(const std::string& expected) const { fail("type", expected, find("type")); }

 private:
  static std::string shown(const nlohmann::json& value) {
    constexpr std::size_t kShown = 60;
    if (value.is_structured()) return value.type_name();
    const std::string text = to_line(value);
    return text.size() <= kShown ? text : text.substr(0, kShown) + "...";
  }

  const nlohmann::json* json_;
  const std::string* path_;
  std::string place_;
};

}  // namespace samebytes::detail
