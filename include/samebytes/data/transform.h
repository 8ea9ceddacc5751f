// Transforms change a decoded sample, in place in its row of the batch where they can; one that moves pixels reads a
// copy and writes the row. What is random about them is a function of
// (seed, epoch, index) through counter-based numbers, so a sample looks the same whatever thread made it and whatever
// came before. Small objects that compose by wrapping; shared, const, used by several threads at once. Images are [H,
// W, C] of any dtype; `field` is the place among the sample's fields.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "samebytes/data/dataset.h"
#include "samebytes/random.h"

namespace samebytes::data {

class Transform {
 public:
  virtual ~Transform() = default;
  // Throws ArgumentError where the sample's fields are not what this transform works on. Called by Loader's
  // constructor.
  virtual void check(std::span<const FieldSpec> fields) const = 0;
  // True: it cannot work in place, or changes shapes or dtypes. Such a transform overrides output() and convert(); any
  // other one overrides apply() alone.
  virtual bool moves() const { return false; }
  // The sample's fields after it; those that came unless it moves().
  virtual std::vector<FieldSpec> output(std::span<const FieldSpec> fields) const;
  // In place. key.lane is this transform's own. Requires: check() passed, output() is what came.
  virtual void apply(std::span<const Field> sample, const SequenceKey& key) const;
  // Reads src, which it may change, and writes every byte of dst, a Field for each of output(); they do not overlap.
  virtual void convert(std::span<const Field> src, std::span<const Field> dst, const SequenceKey& key) const;
  // How many lanes it uses, itself and what it wraps.
  virtual std::uint32_t lanes() const { return 1; }
};
using TransformPtr = std::shared_ptr<const Transform>;

struct NormaliseOptions {
  std::vector<float> mean = {0};       // one number, or one for each channel (the last axis)
  std::vector<float> deviation = {1};  // as mean; above 0
  std::size_t field = 0;               // f32
};
// (x - mean) / deviation. Does not change what later transforms take for the background.
TransformPtr normalise(const NormaliseOptions& options);

struct ShiftOptions {
  int pixels = 1;         // at most this many rows and columns, each direction, every distance equally likely
  std::size_t field = 0;  // what moves in is the field's background
};
TransformPtr shift(const ShiftOptions& options);

// Mirrors left and right, always; wrap it in with_probability.
TransformPtr horizontal_flip(std::size_t field = 0);

// One after the other.
TransformPtr compose(std::vector<TransformPtr> parts);

// The inner transform for this share of the samples, 0 to 1.
TransformPtr with_probability(double probability, TransformPtr inner);

// The data set as the transforms leave it, in order, with what is random about them drawn from (seed, index): for what
// is done once before preload(), such as resizing. Throws ArgumentError where they do not fit.
DatasetPtr transformed(DatasetPtr source, std::vector<TransformPtr> transforms, std::uint64_t seed = 0);

}  // namespace samebytes::data
