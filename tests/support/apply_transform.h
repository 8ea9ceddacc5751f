// One image through one transform, as the loader would do it.
#pragma once

#include <vector>

#include "data/image.h"
#include "samebytes/data/transform.h"

namespace samebytes::data {

// Throws what check() throws. The result has the shape that output() says.
template <class T>
std::vector<T> apply(const TransformPtr& transform, std::vector<T> image, const Shape& shape, SequenceKey key = {},
                     float background = 0) {
  const FieldSpec spec{"image", shape, dtype_of<T>, background};
  transform->check(std::span(&spec, 1));
  const Field field{std::as_writable_bytes(std::span(image)), shape, dtype_of<T>, background};
  if (!transform->moves()) {
    transform->apply(std::span(&field, 1), key);
    return image;
  }
  const detail::SampleBuffer result(transform->output(std::span(&spec, 1)));
  transform->convert(std::span(&field, 1), result.fields(), key);
  const std::span<T> values = result.fields()[0].template as<T>();
  return {values.begin(), values.end()};
}

inline std::vector<float> ramp(std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<float>(i + 1);
  return values;
}

}  // namespace samebytes::data
