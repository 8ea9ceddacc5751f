#include "data/transformed.h"

#include <utility>

#include "data/image.h"

namespace samebytes::data {

Transformed::Transformed(DatasetPtr source, TransformPtr transform, std::uint64_t seed)
    : source_(std::move(source)),
      transform_(std::move(transform)),
      seed_(seed),
      fields_(transform_->output(source_->fields())) {}

bool Transformed::read_with(const SequenceKey& key, std::int64_t index, std::span<const Field> dst) const {
  if (!transform_->moves()) {
    if (!source_->read(index, dst)) return false;
    transform_->apply(dst, key);
    return true;
  }
  const detail::SampleBuffer sample(source_->fields());
  if (!source_->read(index, sample.fields())) return false;
  transform_->convert(sample.fields(), dst, key);
  return true;
}

DatasetPtr transformed(DatasetPtr source, std::vector<TransformPtr> transforms, std::uint64_t seed) {
  if (!source) throw ArgumentError("transformed: expected a data set, got none");
  TransformPtr transform = compose(std::move(transforms));
  transform->check(source->fields());
  return std::make_shared<Transformed>(std::move(source), std::move(transform), seed);
}

}  // namespace samebytes::data
