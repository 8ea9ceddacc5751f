// Transforms change a decoded sample, in place in its row of the batch if possible; one that moves pixels reads a copy
// and writes the row. Their random numbers are a function of (seed, epoch, index), so a sample does not depend on the
// thread or on earlier samples. Transforms are small const objects that compose by wrapping; several threads use them
// at once. Images are [H, W, C] of any dtype; `field` is the index of a field of the sample.
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
  // Throws ArgumentError if the transform does not support the sample's fields. Loader's constructor calls it.
  virtual void check(std::span<const FieldSpec> fields) const = 0;
  // True if it cannot work in place, or changes shapes or dtypes. Such a transform overrides output() and convert();
  // others override only apply().
  virtual bool moves() const { return false; }
  // The sample's fields after the transform; unchanged unless it moves().
  virtual std::vector<FieldSpec> output(std::span<const FieldSpec> fields) const;
  // Transforms in place. key.lane belongs to this transform alone. Requires: check() passed and output() equals the
  // input.
  virtual void apply(std::span<const Field> sample, const SequenceKey& key) const;
  // Reads src, which it may change, and writes every byte of dst, one Field for each of output(). They do not overlap.
  virtual void convert(std::span<const Field> src, std::span<const Field> dst, const SequenceKey& key) const;
  // Number of lanes that it and the transforms it wraps use.
  virtual std::uint32_t lanes() const { return 1; }
};
using TransformPtr = std::shared_ptr<const Transform>;

struct NormaliseOptions {
  std::vector<float> mean = {0};       // one number, or one per channel (the last axis)
  std::vector<float> deviation = {1};  // as mean; above 0
  std::size_t field = 0;               // f32
};
// (x - mean) / deviation. Does not change the background that later transforms use.
TransformPtr normalise(const NormaliseOptions& options);

struct ShiftOptions {
  int pixels = 1;         // at most this many rows and columns in each direction, uniformly distributed
  std::size_t field = 0;  // vacated pixels get the field's background
};
TransformPtr shift(const ShiftOptions& options);

// Always mirrors left and right; wrap it in with_probability.
TransformPtr horizontal_flip(std::size_t field = 0);

// Applies the parts one after the other.
TransformPtr compose(std::vector<TransformPtr> parts);

// Applies the inner transform with this probability, 0 to 1.
TransformPtr with_probability(double probability, TransformPtr inner);

// The data set with the transforms applied in order, with random numbers from (seed, index): for work to do once before
// preload(), such as resizing. Throws ArgumentError if they do not fit.
DatasetPtr transformed(DatasetPtr source, std::vector<TransformPtr> transforms, std::uint64_t seed = 0);

}  // namespace samebytes::data
