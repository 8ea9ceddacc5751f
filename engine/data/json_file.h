// A JSON file in memory; a fault in it is an IoError with the byte offset.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/json.h"
#include "samebytes/io/files.h"

namespace samebytes::detail {

inline nlohmann::json read_json(const std::string& reader, const std::string& path) {
  const std::vector<std::byte> file = io::read_file(path);
  return parse_json(reader, path, {reinterpret_cast<const char*>(file.data()), file.size()});
}

}  // namespace samebytes::detail
