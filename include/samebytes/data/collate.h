// Collate: how samples become a batch. The default one gives every field a first axis of samples and decodes each
// sample straight into its row. Another one may pad, pack or add fields; it says what arrays a batch has and fills
// them. Shared, const, used by several threads at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "samebytes/data/dataset.h"

namespace samebytes::data {

// Decodes and transforms one sample into dst (the data set's fields in their order); false at the end of a stream.
using ReadSample = std::function<bool(std::int64_t index, std::span<const Field> dst)>;

class Collate {
 public:
  virtual ~Collate() = default;
  // The arrays of a batch of these samples, with all their axes. Their number, names and dtypes are the same for every
  // batch; shapes may differ.
  virtual std::vector<FieldSpec> fields(const Dataset& dataset, std::span<const std::int64_t> indices) const = 0;
  // Fills `batch`, one Field for each of fields(); returns the number of samples written, fewer than indices.size()
  // only where a stream ended, and then the first axis of every array is cut to that number.
  virtual std::int64_t fill(const Dataset& dataset, std::span<const std::int64_t> indices, const ReadSample& read,
                            std::span<const Field> batch) const = 0;
};
using CollatePtr = std::shared_ptr<const Collate>;

// Every field as [N, sizes of the field...].
CollatePtr default_collate();

}  // namespace samebytes::data
