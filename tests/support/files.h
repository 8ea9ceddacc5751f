// Files of tests: a folder that vanishes with its owner, and the folder of real data.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>
#include "support/places.h"

namespace samebytes::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "samebytes-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string string() const { return path_.string(); }
  std::size_t count() const {  // entries in it
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

inline void put(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string get(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// $SAMEBYTES_DATA, else data/ of the checkout. Tests skip where the set is absent.
inline std::string data_folder(const std::string& set) {
  const char* root = std::getenv("SAMEBYTES_DATA");
  const std::filesystem::path folder =
      root && *root ? std::filesystem::path(root) : std::filesystem::path(source_folder()) / "data";
  return (folder / set).string();
}

}  // namespace samebytes::testing

// Skips the running test where the folder of a real data set is absent.
#define SAMEBYTES_NEED_DATA(folder) \
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no folder " << (folder) << "; set SAMEBYTES_DATA"
