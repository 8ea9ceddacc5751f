// StepLog: the --log file, one JSON object a line, written at once so that `tail -f` and a killed run have all of it.
#pragma once

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace samebytes::cli {

class StepLog {
 public:
  // An empty path: nothing is logged. Throws IoError where the file cannot be opened.
  explicit StepLog(const std::string& path);
  bool is_on() const { return file_ != nullptr; }
  // Throws IoError for a full disk.
  void write(const nlohmann::ordered_json& line);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace samebytes::cli
