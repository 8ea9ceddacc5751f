// One sample of a data set in memory of its own, filled with a pattern first, so that a value that read() forgets
// shows.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "samebytes/data/dataset.h"

namespace samebytes::testing {

class Sample {
 public:
  Sample(const data::Dataset& set, std::int64_t index) {
    for (const data::FieldSpec& spec : set.fields()) {
      memory_.emplace_back(static_cast<std::size_t>(spec.shape.size()) * bytes_of(spec.dtype), std::byte{0xa5});
      fields_.push_back({memory_.back(), spec.shape, spec.dtype, spec.background});
    }
    EXPECT_TRUE(set.read(index, fields_));
  }
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  template <class T>
  std::vector<T> values(std::size_t field) const {
    const auto span = fields_[field].as<T>();
    return {span.begin(), span.end()};
  }
  template <class T>
  T value(std::size_t field) const {
    return fields_[field].as<T>()[0];
  }

 private:
  std::vector<std::vector<std::byte>> memory_;
  std::vector<data::Field> fields_;
};

}  // namespace samebytes::testing
