// Variables of the environment for a block: what they were before comes back when it ends.
#pragma once

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

namespace samebytes {

class Environment {
 public:
  Environment() = default;
  Environment(const char* name, const std::string& value) { set(name, value); }
  ~Environment() {
    for (const auto& [name, value] : before_) value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  void set(const char* name, const std::string& value) {
    const char* const before = std::getenv(name);
    before_.emplace(name, before != nullptr ? std::optional<std::string>(before) : std::nullopt);
    setenv(name, value.c_str(), 1);
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;  // the first of each name stays
};

}  // namespace samebytes
