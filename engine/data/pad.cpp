// pad_collate: reads samples into rows for the longest possible sample, then compacts the rows.
#include <algorithm>
#include <cstring>

#include "data/batch_fields.h"

namespace samebytes::data {
namespace {

// Fills bytes with `value` in this dtype.
void fill_value(std::span<std::byte> bytes, Dtype dtype, float value) {
  const Field field{bytes, Shape{}, dtype, 0};
  switch (dtype) {
    case Dtype::f32: std::ranges::fill(field.as<float>(), value); break;
    case Dtype::f64: std::ranges::fill(field.as<double>(), static_cast<double>(value)); break;
    case Dtype::i32: std::ranges::fill(field.as<std::int32_t>(), static_cast<std::int32_t>(value)); break;
    case Dtype::i64: std::ranges::fill(field.as<std::int64_t>(), static_cast<std::int64_t>(value)); break;
    case Dtype::u8: std::ranges::fill(field.as<std::uint8_t>(), static_cast<std::uint8_t>(value)); break;
    default: std::memset(bytes.data(), 0, bytes.size()); break;  // value is 0: checked before
  }
}

class PadCollate final : public Collate {
 public:
  explicit PadCollate(const PadOptions& options) : options_(options) {
    if (options.multiple < 1)
      throw ArgumentError("pad_collate: multiple must be 1 or more, got " + std::to_string(options.multiple));
    if (options.mask != f32 && options.mask != Dtype::u8 && options.mask != Dtype::bool_)
      throw ArgumentError("pad_collate: a mask must be f32, u8 or bool, got " + std::string(name_of(options.mask)));
  }

  std::vector<FieldSpec> fields(const Dataset& dataset, std::span<const std::int64_t> indices) const override {
    const auto count = static_cast<std::int64_t>(indices.size());
    const Layout layout = layout_of(dataset);
    std::vector<FieldSpec> batch;
    for (const FieldSpec& field : dataset.fields()) batch.push_back(detail::batched(field, count));
    batch.push_back({"mask", Shape{count, layout.longest}, options_.mask});
    return batch;
  }

  std::int64_t fill(const Dataset& dataset, std::span<const std::int64_t> indices, const ReadSample& read,
                    std::span<Field> batch, const SequenceKey&) const override {
    const std::vector<FieldSpec>& specs = dataset.fields();
    const Layout layout = layout_of(dataset);
    std::vector<Field> row(specs.size());
    std::vector<std::int64_t> lengths;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      for (std::size_t f = 0; f < row.size(); ++f) row[f] = detail::row_of(batch[f], specs[f], i, indices.size());
      if (!read(indices[i], row)) break;
      const std::int64_t length = detail::whole_number(row[layout.length], 0);
      if (length < 0 || length > layout.longest)
        throw ArgumentError("pad_collate: '" + options_.length + "' of sample " + std::to_string(indices[i]) +
                            " must be from 0 to " + std::to_string(layout.longest) + ", got " + std::to_string(length));
      lengths.push_back(length);
    }
    const auto count = static_cast<std::int64_t>(lengths.size());
    std::int64_t steps = lengths.empty() ? 0 : std::max<std::int64_t>(1, *std::ranges::max_element(lengths));
    steps = std::min(layout.longest, (steps + options_.multiple - 1) / options_.multiple * options_.multiple);
    for (Field& field : batch) field.shape[0] = count;
    for (const std::size_t f : layout.padded) {
      const std::size_t bytes = batch[f].bytes.size() / indices.size();  // of a sample read
      const std::size_t step = bytes / static_cast<std::size_t>(layout.longest);
      const std::size_t kept = step * static_cast<std::size_t>(steps);
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        const std::size_t filled = step * static_cast<std::size_t>(lengths[i]);
        std::memmove(batch[f].bytes.data() + i * kept, batch[f].bytes.data() + i * bytes, filled);
        fill_value(batch[f].bytes.subspan(i * kept + filled, kept - filled), batch[f].dtype, options_.value);
      }
      batch[f].shape[1] = steps;
    }
    Field& mask = batch.back();
    mask.shape[1] = steps;
    const auto write = [&](auto values, auto one) {
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        const auto begin = values.begin() + static_cast<std::ptrdiff_t>(i) * steps;
        std::fill(begin, begin + lengths[i], one);
        std::fill(begin + lengths[i], begin + steps, static_cast<decltype(one)>(0));
      }
    };
    if (mask.dtype == f32)
      write(mask.as<float>(), 1.0f);
    else
      write(std::span(reinterpret_cast<std::uint8_t*>(mask.bytes.data()), mask.bytes.size()), std::uint8_t{1});
    return count;
  }

 private:
  struct Layout {
    std::vector<std::size_t> padded;
    std::size_t length = 0;    // index of the field with the length
    std::int64_t longest = 0;  // T
  };

  Layout layout_of(const Dataset& dataset) const {
    const std::vector<FieldSpec>& specs = dataset.fields();
    const auto place = [&](const std::string& name) {
      const auto found = std::ranges::find(specs, name, &FieldSpec::name);
      if (found == specs.end()) throw ArgumentError("pad_collate: the samples have no field '" + name + "'");
      return static_cast<std::size_t>(found - specs.begin());
    };
    Layout layout;
    layout.length = place(options_.length);
    const FieldSpec& length = specs[layout.length];
    if (!detail::is_whole_number(length.dtype) || length.shape.rank() != 0)
      throw ArgumentError("pad_collate: '" + length.name + "' must be one i32 or i64, got " +
                          std::string(name_of(length.dtype)) + " " + length.shape.to_string());
    for (const std::string& name : options_.fields) layout.padded.push_back(place(name));
    for (std::size_t f = 0; options_.fields.empty() && f < specs.size(); ++f)
      if (specs[f].shape.rank() > 0) layout.padded.push_back(f);
    if (layout.padded.empty()) throw ArgumentError("pad_collate: the samples have no field [T, ...] to pad");
    for (const std::size_t f : layout.padded) {
      const FieldSpec& spec = specs[f];
      const FieldSpec& first = specs[layout.padded.front()];
      if (spec.shape.rank() == 0 || spec.shape[0] != first.shape[0] || spec.shape[0] == 0)
        throw ArgumentError("pad_collate: padded fields have a first axis of one size above 0, '" + spec.name +
                            "' is " + spec.shape.to_string() + " and '" + first.name + "' " + first.shape.to_string());
      const bool takes_value = spec.dtype != f16 && spec.dtype != bf16 && spec.dtype != bool_;
      if (options_.value != 0 && !takes_value)
        throw ArgumentError("pad_collate: a value other than 0 needs f32, f64, i32, i64 or u8, '" + spec.name +
                            "' is " + std::string(name_of(spec.dtype)));
      layout.longest = spec.shape[0];
    }
    return layout;
  }

  PadOptions options_;
};

}  // namespace

CollatePtr pad_collate(const PadOptions& options) { return std::make_shared<PadCollate>(options); }

}  // namespace samebytes::data
