#include "samebytes/data/collate.h"

#include "data/batch_fields.h"

namespace samebytes::data {
namespace {

class DefaultCollate final : public Collate {
 public:
  std::vector<FieldSpec> fields(const Dataset& dataset, std::span<const std::int64_t> indices) const override {
    std::vector<FieldSpec> batch;
    for (const FieldSpec& field : dataset.fields())
      batch.push_back(detail::batched(field, static_cast<std::int64_t>(indices.size())));
    return batch;
  }

  std::int64_t fill(const Dataset& dataset, std::span<const std::int64_t> indices, const ReadSample& read,
                    std::span<Field> batch, const SequenceKey&) const override {
    const std::vector<FieldSpec>& specs = dataset.fields();
    std::vector<Field> row(specs.size());
    for (std::size_t i = 0; i < indices.size(); ++i) {
      for (std::size_t f = 0; f < row.size(); ++f) row[f] = detail::row_of(batch[f], specs[f], i, indices.size());
      if (!read(indices[i], row)) {
        for (Field& field : batch) field.shape[0] = static_cast<std::int64_t>(i);
        return static_cast<std::int64_t>(i);
      }
    }
    return static_cast<std::int64_t>(indices.size());
  }
};

}  // namespace

CollatePtr default_collate() { return std::make_shared<DefaultCollate>(); }

}  // namespace samebytes::data
