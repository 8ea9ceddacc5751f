// Shared by collates, transforms and the loader: the bytes of a field, a field with a leading axis of samples, and one
// row of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "samebytes/data/collate.h"
#include "samebytes/error.h"

namespace samebytes::detail {

inline std::size_t bytes_of_field(const data::FieldSpec& spec) {
  return static_cast<std::size_t>(spec.shape.size()) * bytes_of(spec.dtype);
}

// [N, sizes of the field...]. Throws ArgumentError if the field has the maximum rank already.
inline data::FieldSpec batched(const data::FieldSpec& field, std::int64_t samples) {
  if (field.shape.rank() == Shape::kMaxRank)
    throw ArgumentError("collate: field '" + field.name + "' " + field.shape.to_string() +
                        " has no axis left for the samples");
  data::FieldSpec batch = field;
  batch.shape = Shape{samples};
  for (const std::int64_t size : field.shape) batch.shape.push_back(size);
  return batch;
}

// Row `row` of `rows` equal rows, as a field with this spec.
inline data::Field row_of(const data::Field& batch, const data::FieldSpec& spec, std::size_t row, std::size_t rows) {
  const std::size_t bytes = batch.bytes.size() / rows;
  return {batch.bytes.subspan(row * bytes, bytes), spec.shape, spec.dtype, spec.background};
}

// Labels, lengths and ids of samples may be either.
inline bool is_whole_number(Dtype dtype) { return dtype == i32 || dtype == i64; }
inline std::int64_t whole_number(const data::Field& field, std::size_t at) {
  return field.dtype == i64 ? field.as<std::int64_t>()[at] : field.as<std::int32_t>()[at];
}

}  // namespace samebytes::detail
