// JSON of files: one parser with limits, whose faults are an IoError with file and place. Anybody may have written the
// file, so size, nesting and numbers have bounds, and a value of another type than its reader expects is a fault as
// well.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/io_error.h"

namespace samebytes::detail {

constexpr int kMostJsonLevels = 64;  // what copies or prints a value goes down as many levels of the stack
constexpr std::size_t kMostJsonBytes = std::size_t{128} << 20;  // a value takes many times the memory of its text

// What the library says without its prefix "[json.exception.parse_error.101] ", and not more than a line of it: it
// repeats what it has read.
inline std::string text_of_json_error(const std::exception& error) {
  constexpr std::size_t kMostBytes = 200;
  const std::string what = error.what();
  const std::size_t end = what.find("] ");
  return what.substr(what.starts_with("[json.") && end != std::string::npos ? end + 2 : 0, kMostBytes);
}

// `offset`: where the text begins in the file. on_key(key, level) sees each key of an object.
template <class Json, class OnKey>
Json parse_json(const std::string& reader, const std::string& path, std::string_view text, std::int64_t offset,
                const OnKey& on_key, std::size_t most_bytes = kMostJsonBytes) {
  if (text.size() > most_bytes)
    throw_io(reader, path, offset, "JSON of at most " + std::to_string(most_bytes) + " bytes",
             std::to_string(text.size()));
  try {
    return Json::parse(text.begin(), text.end(), [&](int level, typename Json::parse_event_t event, Json& parsed) {
      using Event = typename Json::parse_event_t;
      if ((event == Event::object_start || event == Event::array_start) && level >= kMostJsonLevels)
        throw_io(reader, path, -1, "JSON of at most " + std::to_string(kMostJsonLevels) + " levels", "more");
      if (event == Event::key) on_key(parsed.template get_ref<const std::string&>(), level);
      return true;
    });
  } catch (const typename Json::parse_error& error) {
    throw_io(reader, path, offset + static_cast<std::int64_t>(error.byte > 0 ? error.byte - 1 : 0), "JSON",
             text_of_json_error(error));
  } catch (const typename Json::exception& error) {  // a number that no double holds
    throw_io(reader, path, -1, "JSON", text_of_json_error(error));
  }
}

template <class Json = nlohmann::json>
Json parse_json(const std::string& reader, const std::string& path, std::string_view text) {
  return parse_json<Json>(reader, path, text, 0, [](const std::string&, int) {});
}

// Of a text that is no file; none where it is no JSON within the limits.
template <class Json = nlohmann::json>
std::optional<Json> parse_json(std::string_view text) {
  try {
    return parse_json<Json>("", "", text);
  } catch (const IoError&) {
    return std::nullopt;
  }
}

// What fn returns, where it takes values of JSON apart; one of another type is an IoError.
template <class Fn>
auto reading_json(const std::string& reader, const std::string& path, const Fn& fn) {
  try {
    return fn();
  } catch (const nlohmann::json::exception& error) {
    throw_io(reader, path, -1, "values of the types that belong there", text_of_json_error(error));
  }
}

// One line; bytes that are no UTF-8, such as those of a file's name, become U+FFFD.
template <class Json>
std::string to_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The first key or value in it that is no UTF-8; null: there is none.
template <class Json>
const std::string* text_without_utf8(const Json& json) {
  const auto is_whole = [](const std::string& text) {
    return to_line(Json(text)) == Json(text).dump(-1, ' ', false, Json::error_handler_t::ignore);
  };
  if (json.is_string() && !is_whole(json.template get_ref<const std::string&>()))
    return &json.template get_ref<const std::string&>();
  for (auto part = json.begin(); json.is_structured() && part != json.end(); ++part) {
    if (json.is_object() && !is_whole(part.key())) return &part.key();
    if (const std::string* const text = text_without_utf8(*part)) return text;
  }
  return nullptr;
}

// For a file whose texts must come back as they are: one that is no UTF-8 is an ArgumentError that shows it.
template <class Json>
std::string to_text(const std::string& writer, const Json& json, int indent = -1) {
  try {
    return json.dump(indent);
  } catch (const typename Json::type_error&) {
    const std::string* const text = text_without_utf8(json);
    throw ArgumentError(writer + ": expected names and texts in UTF-8, got " +
                        (text == nullptr ? "others" : to_line(Json(*text))));
  }
}

}  // namespace samebytes::detail
