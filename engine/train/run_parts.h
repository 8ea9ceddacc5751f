// What a RunState is made of: parts, each of which gives and takes arrays and numbers, and the sources that they are
// restored from: a file or a snapshot in memory.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/host_array.h"
#include "samebytes/io/safetensors.h"
#include "samebytes/optim/state.h"

namespace samebytes::detail {

using RunJson = nlohmann::ordered_json;

inline constexpr const char* kText = "text";  // among the numbers of a part that is text

// JSON has no infinities and no NaN; they stand there as text.
RunJson json_of(double number);
double number_of(const RunJson& value);

// What a part has now.
struct PartState {
  std::vector<optim::StateArray> arrays;                  // in shared memory
  std::vector<std::pair<std::string, HostArray>> values;  // on the host
  RunJson numbers = RunJson::object();                    // and text
  RunJson layouts = {};                                   // of a module's arrays, for whoever reads the file without it
};

class RunSource {
 public:
  virtual ~RunSource() = default;
  virtual std::string name() const = 0;  // for messages: the path
  virtual const std::vector<io::TensorInfo>& tensors() const = 0;
  virtual void read(std::size_t tensor, std::span<std::byte> dst) const = 0;
  const RunJson& description() const { return description_; }
  std::optional<std::size_t> find(const std::string& tensor) const;

 protected:
  RunJson description_;
};

// One part's share of a source.
class PartReader {
 public:
  PartReader(const RunSource& source, std::string part);
  const RunJson& numbers() const { return numbers_; }
  // Straight into the memory of a cell that has the tensor's size.
  void read_into(const Array& cell, const std::string& name) const;
  HostArray values(const std::string& name) const;
  std::vector<optim::StateArray> arrays() const;  // all of the part's tensors, in memory of their own

 private:
  const RunSource& source_;
  std::string part_;
  const RunJson& numbers_;
};

struct Part {
  // same: it always has the same arrays and numbers, so that they can be compared before anything is changed.
  enum Content : bool { varying, same };

  std::string name;
  Content content = same;
  std::function<PartState()> get;
  std::function<void(const PartReader&)> set;
};

// A file whose checksums are right. Throws IoError.
class RunFile final : public RunSource {
 public:
  explicit RunFile(const std::string& path);
  std::string name() const override { return file_.path(); }
  const std::vector<io::TensorInfo>& tensors() const override { return file_.tensors(); }
  void read(std::size_t tensor, std::span<std::byte> dst) const override { file_.read(tensor, dst); }

 private:
  io::TensorFile file_;
};

void write_run_file(const std::string& path, std::span<const io::TensorView> tensors, const std::string& description);

}  // namespace samebytes::detail
