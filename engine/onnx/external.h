// Tensors of a file, with data beside it where the file says so, and the inputs of a model checked against its types.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "onnx/call.h"

namespace samebytes::onnx {

// Files of external data, mapped. Weights use the bytes where they lie, as long as they live.
class ExternalData {
 public:
  explicit ExternalData(std::filesystem::path folder) : folder_(std::move(folder)) {}
  // Throws IoError for a path that leaves the folder, a file that is missing, and bytes outside of it.
  Item item(const ::onnx::TensorProto& proto);
  std::size_t bytes() const { return bytes_; }  // of the files that tensors lie in, each once

 private:
  struct Mapped;
  std::shared_ptr<Mapped> open(const std::string& location);

  std::filesystem::path folder_;
  std::map<std::string, std::shared_ptr<Mapped>> files_;  // by path
  std::size_t bytes_ = 0;
  std::size_t copied_ = 0;  // bytes of tensors that cannot use theirs where they lie
};

// A value for this input of a graph; notes the sizes of symbols. Throws ArgumentError where type, rank or sizes differ.
Item bound(const ::onnx::ValueInfoProto& input, const Value& value, std::map<std::string, std::int64_t>& symbols);

}  // namespace samebytes::onnx
