// What the programs of this folder read from safetensors files and write into them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"

namespace checks {

namespace sb = samebytes;

// A tensor of a file, i64, i32 or f32; an array that is not defined where there is none of this name.
inline sb::Array input_of(const sb::io::TensorFile& file, const std::string& name) {
  const std::optional<std::size_t> index = file.find(name);
  if (!index) return {};
  const sb::HostArray values = file.read(*index);
  if (values.dtype == sb::i64) return sb::array(values.as<std::int64_t>(), values.shape);
  return values.dtype == sb::i32 ? sb::array(values.as<std::int32_t>(), values.shape)
                                 : sb::array(values.as<float>(), values.shape);
}

// Arrays by name, as f32, for one file.
class Results {
 public:
  void add(const std::string& name, const sb::Array& values) {
    names_.push_back(name);
    arrays_.emplace_back(values.shape(), values.to_vector<float>());
  }
  void write(const std::string& path, const sb::io::Metadata& metadata = {}) const {
    std::vector<sb::io::TensorView> views;
    for (std::size_t i = 0; i < names_.size(); ++i)
      views.push_back({names_[i], sb::f32, arrays_[i].shape, arrays_[i].bytes});
    sb::io::save_tensors(path, views, metadata);
  }

 private:
  std::vector<std::string> names_;
  std::vector<sb::HostArray> arrays_;
};

}  // namespace checks
