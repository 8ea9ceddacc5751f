// A JSON file in memory; a fault in it is an IoError with the byte offset.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/io_error.h"
#include "samebytes/io/files.h"

namespace samebytes::detail {

inline nlohmann::json read_json(const std::string& reader, const std::string& path) {
  const std::vector<std::byte> file = io::read_file(path);
  const auto* text = reinterpret_cast<const char*>(file.data());
  try {
    return nlohmann::json::parse(text, text + file.size());
  } catch (const nlohmann::json::parse_error& error) {
    // The library counts bytes from 1 and prefixes its own name for the error.
    const std::string what = error.what();
    const std::size_t colon = what.find(": ");
    throw_io(reader, path, static_cast<std::int64_t>(error.byte) - 1, "JSON",
             colon == std::string::npos ? what : what.substr(colon + 2));
  }
}

}  // namespace samebytes::detail
