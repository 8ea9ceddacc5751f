// Transformed: a data set with a transform applied, for transforms that change shapes or cannot work in place.
#pragma once

#include <cstdint>
#include <vector>

#include "samebytes/data/dataset.h"
#include "samebytes/data/transform.h"

namespace samebytes::data {

class Transformed final : public Dataset {
 public:
  // Requires: transform->check(source->fields()) passed.
  Transformed(DatasetPtr source, TransformPtr transform, std::uint64_t seed);
  std::int64_t size() const override { return source_->size(); }
  const std::vector<FieldSpec>& fields() const override { return fields_; }
  bool read(std::int64_t index, std::span<const Field> dst) const override {
    return read_with({.seed = seed_, .index = index, .domain = RandomDomain::preparation}, index, dst);
  }
  // Uses the key's random numbers.
  bool read_with(const SequenceKey& key, std::int64_t index, std::span<const Field> dst) const;
  bool is_sequential() const override { return source_->is_sequential(); }
  void begin_pass(std::int64_t epoch) const override { source_->begin_pass(epoch); }

 private:
  DatasetPtr source_;
  TransformPtr transform_;
  std::uint64_t seed_;
  std::vector<FieldSpec> fields_;
};

}  // namespace samebytes::data
