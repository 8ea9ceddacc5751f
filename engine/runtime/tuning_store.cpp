// The store of the tuner: its place, its text, and the errors for a damaged one.
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "core/json.h"
#include "runtime/devices.h"
#include "runtime/runtime.h"
#include "runtime/tuning.h"
#include "samebytes/error.h"
#include "samebytes/io/files.h"
#include "samebytes/log.h"

namespace samebytes::detail {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kStoreAbout =
    "Choices of `samebytes tune` for one device and driver; a value may be edited, and what is not named here is built "
    "in. Another choice may change the last bits of results. `samebytes tune --show` lists what there is.";
constexpr int kStoreFormat = 1;

// An error in a store, with its position.
[[noreturn]] void bad_store(const std::string& path, const std::string& key, const std::string& expected,
                            const std::string& found) {
  throw IoError("tuning: " + path + ": " + key + ": expected " + expected + ", found " + found +
                    "; mend the file, or remove it (samebytes tune --reset)",
                path);
}

std::string found_text(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  return value.dump();
}

const std::string& text_at(const Json& json, const char* key, const std::string& path) {
  const auto found = json.find(key);
  if (found == json.end()) bad_store(path, key, "a text", "nothing");
  if (!found->is_string()) bad_store(path, key, "a text", found_text(*found));
  return found->get_ref<const std::string&>();
}

double number_at(const Json& json, const char* key, const std::string& path) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number())
    bad_store(path, std::string("measured.") + key, "a number", found == json.end() ? "nothing" : found_text(*found));
  return found->get<double>();
}

// The values of a section, prefixed with the words of the path.
void read_values(const Json& json, const std::string& prefix, const std::string& path, Personality personality,
                 Values* values) {
  for (const auto& [name, value] : json.items()) {
    const std::string key = prefix + "." + name;
    if (value.is_object()) {
      read_values(value, key, path, personality, values);
      continue;
    }
    const Tunable* row = find_tunable(personality, key);
    if (!row) bad_store(path, key, "a key that `samebytes tune --show` lists", "this one");
    std::int64_t number = -1;
    if (!row->words.empty()) {
      for (std::size_t i = 0; i < row->words.size(); ++i)
        if (value.is_string() && value.get_ref<const std::string&>() == row->words[i])
          number = static_cast<std::int64_t>(i);
    } else if (value.is_number_integer()) {
      number = value.get<std::int64_t>();
    } else {
      bad_store(path, key, row->legal_text(), found_text(value));
    }
    if (!row->is_legal(number)) bad_store(path, key, row->legal_text(), found_text(value));
    (*values)[key] = number;
  }
}

std::vector<TunedRow> read_measured(const Json& json, const std::string& path) {
  if (!json.is_array()) bad_store(path, "measured", "a list", found_text(json));
  std::vector<TunedRow> rows;
  for (const Json& row : json) {
    if (!row.is_object()) bad_store(path, "measured", "objects", found_text(row));
    rows.push_back({text_at(row, "group", path), text_at(row, "kernel", path), text_at(row, "shape", path),
                    number_at(row, "built_in_ms", path), number_at(row, "best_ms", path)});
  }
  return rows;
}

// The letters and digits of a name, with one '-' for each run of other characters.
std::string safe(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '+')
      text += c;
    else if (!text.empty() && text.back() != '-')
      text += '-';
  }
  while (!text.empty() && (text.back() == '-' || text.back() == '.')) text.pop_back();
  return text;
}

Json& place(Json& json, const std::string& key) {
  Json* at = &json;
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('.', begin), key.size());
    at = &(*at)[key.substr(begin, end - begin)];
    begin = end + 1;
  }
  return *at;
}

void log_once(const std::string& path, const std::string& message) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  if (said.insert(path).second) log_message("warning", message);
}

}  // namespace

std::string tuning_path(const DeviceInfo& info) {
  std::filesystem::path folder = environment("SAMEBYTES_TUNING");
  if (folder == "off") return {};
  if (folder.empty()) {
    const std::string cache = environment("XDG_CACHE_HOME"), home = environment("HOME");
    if (cache.empty() && home.empty()) return {};
    folder = (cache.empty() ? std::filesystem::path(home) / ".cache" : std::filesystem::path(cache)) / "samebytes";
  }
  return (folder / (safe(info.name) + "--" + safe(info.platform + " " + info.driver) + "--" +
                    name_of(info.personality) + ".json"))
      .string();
}

TuningStore parse_tuning(std::string_view text, const std::string& path, const DeviceInfo& info, std::string* foreign) {
  Json json;
  try {
    json = parse_json<Json>("tuning", path, text);
  } catch (const IoError& error) {
    throw IoError(std::string(error.what()) + "; mend the file, or remove it (samebytes tune --reset)", path,
                  error.offset());
  }
  if (!json.is_object()) bad_store(path, "the whole", "an object", found_text(json));
  const auto format = json.find("format");
  if (format == json.end() || *format != kStoreFormat)
    bad_store(path, "format", std::to_string(kStoreFormat), format == json.end() ? "nothing" : found_text(*format));
  const std::pair<const char*, std::string> wanted[] = {{"device", info.name},
                                                        {"platform", info.platform},
                                                        {"driver", info.driver},
                                                        {"personality", name_of(info.personality)},
                                                        {"table", table_hash(info.personality)}};
  for (const auto& [key, value] : wanted) {
    const std::string& came = text_at(json, key, path);
    if (came == value) continue;
    *foreign = "tuning: " + path + " was made for " + key + " " + came + ", this is " + value;
    return {};
  }
  TuningStore store;
  for (const auto& [name, value] : json.items()) {
    if (name == "tiles" || name == "launch" || name == "clblast") {
      if (!value.is_object()) bad_store(path, name, "an object", found_text(value));
      read_values(value, name, path, info.personality, &store.values);
    } else if (name == "measured") {
      store.measured = read_measured(value, path);
    } else if (name == "date") {
      store.date = text_at(json, "date", path);
    } else if (name != "about" && name != "format" && name != "device" && name != "platform" && name != "driver" &&
               name != "personality" && name != "table") {
      bad_store(path, name,
                "about, format, device, platform, driver, personality, table, date, tiles, launch, clblast or measured",
                "this key");
    }
  }
  if (const auto clash = find_clash(store.values, info.personality, vector_width_of(info, f32)))
    bad_store(path, clash->key, clash->expected, clash->found);
  return store;
}

std::string tuning_text(const TuningStore& store, const DeviceInfo& info) {
  Json json;
  json["about"] = kStoreAbout;
  json["format"] = kStoreFormat;
  json["device"] = info.name;
  json["platform"] = info.platform;
  json["driver"] = info.driver;
  json["personality"] = name_of(info.personality);
  json["table"] = table_hash(info.personality);
  json["date"] = store.date;
  for (const Tunable& row : tunables(info.personality)) {
    const auto found = store.values.find(row.key);
    if (found == store.values.end()) continue;
    Json& value = place(json, row.key);
    if (row.words.empty())
      value = found->second;
    else
      value = row.value_text(found->second);
  }
  std::string text = json.dump(2);
  // One line per measured row, which dump() would spread over many.
  if (!store.measured.empty()) {
    text.resize(text.rfind('\n'));
    text += ",\n  \"measured\": [";
    for (std::size_t i = 0; i < store.measured.size(); ++i) {
      const TunedRow& row = store.measured[i];
      text += (i == 0 ? "\n    " : ",\n    ") + Json{{"group", row.group},
                                                     {"kernel", row.kernel},
                                                     {"shape", row.shape},
                                                     {"built_in_ms", row.built_in_ms},
                                                     {"best_ms", row.best_ms}}
                                                    .dump();
    }
    text += "\n  ]\n}";
  }
  return text + "\n";
}

TuningPtr load_tuning(const std::optional<std::string>& asked, const DeviceInfo& info, std::string* file) {
  file->clear();
  const auto built_in = [&] { return std::make_shared<const Tuning>(info.personality); };
  const std::string path = asked ? *asked : tuning_path(info);
  if (path.empty()) return built_in();
  std::error_code ignored;
  if (!asked && !std::filesystem::exists(path, ignored)) return built_in();
  const std::vector<std::byte> bytes = io::read_file(path);
  std::string foreign;
  TuningStore store = parse_tuning({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path, info, &foreign);
  if (!foreign.empty()) {
    if (asked) throw IoError(foreign, path);
    log_once(path, foreign + "; the built-in choices are used, `samebytes tune` makes a new one");
    return built_in();
  }
  *file = path;
  return std::make_shared<const Tuning>(info.personality, std::move(store.values));
}

}  // namespace samebytes::detail
