// What the collates share: a field with an axis of samples before it, and one row of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "samebytes/data/collate.h"
#include "samebytes/error.h"

namespace samebytes::data::detail {

// [N, sizes of the field...]. Throws ArgumentError where no axis is left.
inline FieldSpec batched(const FieldSpec& field, std::int64_t samples) {
  if (field.shape.rank() == Shape::kMaxRank)
    throw ArgumentError("collate: field '" + field.name + "' " + field.shape.to_string() +
                        " has no axis left for the samples");
  FieldSpec batch = field;
  batch.shape = Shape{samples};
  for (const std::int64_t size : field.shape) batch.shape.push_back(size);
  return batch;
}

// Row `row` of `rows` equal ones, as a field of this spec.
inline Field row_of(const Field& batch, const FieldSpec& spec, std::size_t row, std::size_t rows) {
  const std::size_t bytes = batch.bytes.size() / rows;
  return {batch.bytes.subspan(row * bytes, bytes), spec.shape, spec.dtype, spec.background};
}

}  // namespace samebytes::data::detail
