#include "samebytes/models/config.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/json.h"

namespace samebytes::models {

struct Config::State {
  std::string path;
  nlohmann::ordered_json json;
};

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kConfigReader = "config";
constexpr std::int64_t kLargestSize = std::int64_t{1} << 27;
constexpr std::uintmax_t kMostBytes = std::uintmax_t{16} << 20;

std::string shortened(const Json& json) {
  const std::string text = detail::to_line(json);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

const Json* find(const Json& json, const std::string& key) {
  const auto at = json.find(key);
  return at == json.end() || at->is_null() ? nullptr : &*at;
}

}  // namespace

Config Config::parse(const std::string& path, std::string_view text) {
  auto state = std::make_shared<State>();
  state->path = path;
  state->json = detail::parse_json<Json>(kConfigReader, path, text);
  if (!state->json.is_object()) detail::throw_io(kConfigReader, path, 0, "a JSON object", state->json.type_name());
  Config config;
  config.state_ = std::move(state);
  return config;
}

Config Config::read(const std::string& path) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (!std::filesystem::is_regular_file(status)) detail::throw_io(kConfigReader, path, -1, "a file", "none");
  const std::uintmax_t size = std::filesystem::file_size(path, code);
  if (code || size > kMostBytes)
    detail::throw_io(kConfigReader, path, -1, "at most " + std::to_string(kMostBytes) + " bytes", std::to_string(size));
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(size), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file) detail::throw_io(kConfigReader, path, -1, "a readable file", "an unreadable one");
  return parse(path, text);
}

void Config::fail(const std::string& key, const std::string& expected, const std::string& found) const {
  detail::throw_io(kConfigReader, state_->path, -1, expected + " for '" + key + "'", found);
}

const std::string& Config::path() const { return state_->path; }
bool Config::has(const std::string& key) const { return find(state_->json, key) != nullptr; }

std::int64_t Config::integer(const std::string& key, std::optional<std::int64_t> fallback) const {
  const Json* const value = find(state_->json, key);
  if (value == nullptr) {
    if (!fallback) fail(key, "a whole number", "none");
    return *fallback;
  }
  if (!value->is_number_integer() || *value < 0 || *value > kLargestSize)
    fail(key, "a whole number from 0 to " + std::to_string(kLargestSize), shortened(*value));
  return value->get<std::int64_t>();
}

std::int64_t Config::size(const std::string& key, std::optional<std::int64_t> fallback) const {
  const std::int64_t value = integer(key, fallback);
  if (value < 1) fail(key, "a whole number of 1 or more", std::to_string(value));
  return value;
}

double Config::number(const std::string& key, std::optional<double> fallback) const {
  const Json* const value = find(state_->json, key);
  if (value == nullptr) {
    if (!fallback) fail(key, "a number", "none");
    return *fallback;
  }
  if (!value->is_number()) fail(key, "a number", shortened(*value));
  return value->get<double>();
}

bool Config::flag(const std::string& key, bool fallback) const {
  const Json* const value = find(state_->json, key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) fail(key, "true or false", shortened(*value));
  return value->get<bool>();
}

std::string Config::text(const std::string& key, std::optional<std::string> fallback) const {
  const Json* const value = find(state_->json, key);
  if (value == nullptr) {
    if (!fallback) fail(key, "a text", "none");
    return *fallback;
  }
  if (!value->is_string()) fail(key, "a text", shortened(*value));
  return value->get<std::string>();
}

std::vector<double> Config::numbers(const std::string& key) const {
  const Json* const value = find(state_->json, key);
  if (value == nullptr) return {};
  if (value->is_number()) return {value->get<double>()};
  std::vector<double> result;
  if (!value->is_array()) fail(key, "a list of numbers", shortened(*value));
  for (const Json& item : *value) {
    if (!item.is_number()) fail(key, "a list of numbers", shortened(*value));
    result.push_back(item.get<double>());
  }
  return result;
}

std::vector<std::string> Config::texts(const std::string& key) const {
  const Json* const value = find(state_->json, key);
  if (value == nullptr) return {};
  std::vector<std::string> result;
  if (!value->is_array()) fail(key, "a list of texts", shortened(*value));
  for (const Json& item : *value) {
    if (!item.is_string()) fail(key, "a list of texts", shortened(*value));
    result.push_back(item.get<std::string>());
  }
  return result;
}

Config Config::part(const std::string& key) const {
  const Json* const value = find(state_->json, key);
  if (value != nullptr && !value->is_object()) fail(key, "an object", shortened(*value));
  auto state = std::make_shared<State>();
  state->path = state_->path;
  state->json = value != nullptr ? *value : Json::object();
  Config config;
  config.state_ = std::move(state);
  return config;
}

std::size_t Config::count(const std::string& key) const {
  const Json* const value = find(state_->json, key);
  return value != nullptr && (value->is_array() || value->is_object()) ? value->size() : 0;
}

std::vector<std::string> Config::keys() const {
  std::vector<std::string> result;
  for (const auto& [key, value] : state_->json.items()) result.push_back(key);
  return result;
}

std::string Config::to_text() const { return state_->json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

Config Config::with(const std::string& key, const std::string& value) const {
  auto state = std::make_shared<State>(*state_);
  state->json[key] = value;
  Config config;
  config.state_ = std::move(state);
  return config;
}

}  // namespace samebytes::models
