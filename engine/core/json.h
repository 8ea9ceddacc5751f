// JSON of files: one parser with limits, whose faults are an IoError with file and place. Anybody may have written the
// file, so nesting and numbers have bounds, and a value of another type than its reader expects is a fault as well.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/io_error.h"

namespace samebytes::detail {

constexpr int kMostJsonLevels = 64;  // what copies or prints a value goes down as many levels of the stack

// What the library says without its prefix "[json.exception.parse_error.101] ".
inline std::string text_of_json_error(const std::exception& error) {
  const std::string what = error.what();
  const std::size_t end = what.find("] ");
  return what.starts_with("[json.") && end != std::string::npos ? what.substr(end + 2) : what;
}

// `offset`: where the text begins in the file. on_key(key, level) sees each key of an object.
template <class Json, class OnKey>
Json parse_json(const std::string& reader, const std::string& path, std::string_view text, std::int64_t offset,
                const OnKey& on_key) {
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

}  // namespace samebytes::detail
