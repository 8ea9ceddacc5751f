#include "samebytes/data/collate.h"

namespace samebytes::data {
namespace {

class DefaultCollate final : public Collate {
 public:
  std::vector<FieldSpec> fields(const Dataset& dataset, std::span<const std::int64_t> indices) const override {
    std::vector<FieldSpec> batch = dataset.fields();
    for (FieldSpec& field : batch) {
      if (field.shape.rank() == Shape::kMaxRank)
        throw ArgumentError("collate: field '" + field.name + "' " + field.shape.to_string() +
                            " has no axis left for the samples");
      Shape shape{static_cast<std::int64_t>(indices.size())};
      for (const std::int64_t size : field.shape) shape.push_back(size);
      field.shape = shape;
    }
    return batch;
  }

  std::int64_t fill(const Dataset& dataset, std::span<const std::int64_t> indices, const ReadSample& read,
                    std::span<const Field> batch) const override {
    std::vector<Field> row;
    for (const FieldSpec& spec : dataset.fields()) row.push_back({{}, spec.shape, spec.dtype, spec.background});
    for (std::size_t i = 0; i < indices.size(); ++i) {
      for (std::size_t f = 0; f < row.size(); ++f) {
        const std::size_t bytes = batch[f].bytes.size() / indices.size();
        row[f].bytes = batch[f].bytes.subspan(i * bytes, bytes);
      }
      if (!read(indices[i], row)) return static_cast<std::int64_t>(i);
    }
    return static_cast<std::int64_t>(indices.size());
  }
};

}  // namespace

CollatePtr default_collate() { return std::make_shared<DefaultCollate>(); }

}  // namespace samebytes::data
