// Shared by the transforms: checks of fields, samples in separate memory, copies, pixels as floats.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "data/batch_fields.h"
#include "samebytes/data/transform.h"
#include "samebytes/error.h"

namespace samebytes::detail {

// Throws ArgumentError if the sample has no such field.
const data::FieldSpec& check_field(const char* what, std::span<const data::FieldSpec> fields, std::size_t field);
// [H, W, C], any dtype.
const data::FieldSpec& check_image(const char* what, std::span<const data::FieldSpec> fields, std::size_t field);
// [H, W, C], f32 or u8, neither side empty.
const data::FieldSpec& check_pixels(const char* what, std::span<const data::FieldSpec> fields, std::size_t field);

// One element with the field's background value. Throws ArgumentError for a dtype that cannot hold it.
std::vector<std::byte> background_pixel(const data::Field& field);

// A sample in separate, uninitialised memory.
class SampleBuffer {
 public:
  explicit SampleBuffer(std::span<const data::FieldSpec> specs);
  std::span<const data::Field> fields() const { return fields_; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::vector<data::Field> fields_;
};

std::vector<data::FieldSpec> specs_of(std::span<const data::Field> sample);  // without names
// Of equal size.
inline void copy_field(const data::Field& src, const data::Field& dst) {
  if (!src.bytes.empty()) std::memcpy(dst.bytes.data(), src.bytes.data(), src.bytes.size());
}
void copy_fields(std::span<const data::Field> src, std::span<const data::Field> dst);
void copy_other_fields(std::span<const data::Field> src, std::span<const data::Field> dst, std::size_t but);

// Changes only the field's shape.
std::vector<data::FieldSpec> with_shape(std::span<const data::FieldSpec> fields, std::size_t field, const Shape& shape);

// Calls visit with a span of the pixels' own type. Requires: f32 or u8.
template <class Visit>
void with_pixels(const data::Field& field, const Visit& visit) {
  if (field.dtype == Dtype::u8)
    visit(field.as<std::uint8_t>());
  else
    visit(field.as<float>());
}

// Converts a computed value to a pixel: bytes are rounded to the nearest and clamped to 0 to 255.
template <class T>
T to_pixel(float value) {
  if constexpr (std::is_same_v<T, float>)
    return value;
  else
    return static_cast<T>(std::lround(std::clamp(value, 0.0f, 255.0f)));
}

// How one axis is resampled: each output is a weighted sum of neighbouring inputs.
struct Taps {
  std::vector<std::int64_t> first;  // of each output
  std::vector<float> weights;       // [outputs, most], zeros behind the last one
  std::size_t most = 0;
};
// A triangle filter; wider than a pixel only with `antialias` on a shrinking axis. Sizes above 0.
Taps linear_taps(std::int64_t inputs, std::int64_t outputs, bool antialias);
// src floor(i * inputs / outputs) for output i.
Taps nearest_taps(std::int64_t inputs, std::int64_t outputs);

struct ImageWindow {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};
// The window of image `src`, resampled to the size of `dst`; the same channels and dtype, f32 or u8.
void resample(const data::Field& src, const ImageWindow& window, const data::Field& dst, const Taps& rows,
              const Taps& columns);

}  // namespace samebytes::detail
