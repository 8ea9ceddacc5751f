// Finds a file of a data set under its name, or compressed with the suffix .gz. Used by the readers of folders.
#pragma once

#include <filesystem>
#include <string>

#include "core/io_error.h"

namespace samebytes::detail {

inline bool has_file(const std::string& folder, const std::string& name) {
  std::error_code ignored;
  const std::filesystem::path plain = std::filesystem::path(folder) / name;
  return std::filesystem::exists(plain, ignored) || std::filesystem::exists(plain.string() + ".gz", ignored);
}

// Throws IoError, naming `reader`, if neither exists.
inline std::string find_file(const std::string& reader, const std::string& folder, const std::string& name) {
  std::error_code ignored;
  std::string plain = (std::filesystem::path(folder) / name).string();
  if (std::filesystem::exists(plain, ignored)) return plain;
  if (std::filesystem::exists(plain + ".gz", ignored)) return plain + ".gz";
  const bool is_folder = std::filesystem::is_directory(folder, ignored);
  throw_io(reader, plain, -1, "this file or the same with .gz", is_folder ? "neither" : "no folder " + folder);
}

}  // namespace samebytes::detail
