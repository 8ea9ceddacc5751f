#include "data/batch_fields.h"
#include "samebytes/data/sampler.h"

namespace samebytes::data {
namespace {

class ContrastiveCollate final : public Collate {
 public:
  explicit ContrastiveCollate(const ContrastiveOptions& options) : options_(options) {
    if (options.views < 1) throw ArgumentError("contrastive_collate: views must be 1 or more, got 0");
  }

  std::vector<FieldSpec> fields(const Dataset& dataset, std::span<const std::int64_t> indices) const override {
    if (dataset.is_sequential())
      throw ArgumentError("contrastive_collate: reads a sample once for each view, got a stream");
    const std::int64_t rows = static_cast<std::int64_t>(indices.size()) * options_.views;
    std::vector<FieldSpec> batch;
    for (const FieldSpec& field : dataset.fields()) batch.push_back(detail::batched(field, rows));
    batch.push_back({"pair", Shape{rows}, i32});
    return batch;
  }

  std::int64_t fill(const Dataset& dataset, std::span<const std::int64_t> indices, const ReadSample& read,
                    std::span<Field> batch, const SequenceKey& key) const override {
    const std::vector<FieldSpec>& specs = dataset.fields();
    const std::size_t samples = indices.size(), views = options_.views, rows = samples * views;
    const Permutation order(static_cast<std::int64_t>(rows), key.seed, key.epoch, key.index, key.domain);
    const std::span<std::int32_t> pair = batch.back().as<std::int32_t>();
    std::vector<Field> row(specs.size());
    for (std::size_t i = 0; i < samples; ++i)
      for (std::size_t view = 0; view < views; ++view) {
        std::size_t place = options_.interleaved ? i * views + view : view * samples + i;
        if (options_.permute) place = static_cast<std::size_t>(order.at(static_cast<std::int64_t>(place)));
        for (std::size_t f = 0; f < row.size(); ++f) row[f] = detail::row_of(batch[f], specs[f], place, rows);
        if (!read(indices[i], row, static_cast<std::uint32_t>(view)))
          throw ArgumentError("contrastive_collate: the source ended at sample " + std::to_string(indices[i]));
        pair[place] = static_cast<std::int32_t>(i);
      }
    return static_cast<std::int64_t>(samples);
  }

 private:
  ContrastiveOptions options_;
};

}  // namespace

CollatePtr contrastive_collate(const ContrastiveOptions& options) {
  return std::make_shared<ContrastiveCollate>(options);
}

}  // namespace samebytes::data
