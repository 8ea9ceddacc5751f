#include "samebytes/data/array_set.h"

#include <cstring>
#include <mutex>
#include <utility>

#include "data/read_all.h"
#include "samebytes/engine.h"
#include "samebytes/slot.h"

namespace samebytes::data {
namespace {

class ArraySet final : public Dataset {
 public:
  explicit ArraySet(std::vector<ArrayColumn> columns) {
    if (columns.empty()) throw ArgumentError("from_arrays: a sample has at least one field, got none");
    for (const ArrayColumn& column : columns) {
      if (!column.rows.defined() || column.rows.shape().rank() == 0)
        throw ArgumentError("from_arrays: '" + column.name + "' wants an array whose first axis counts samples, got " +
                            (column.rows.defined() ? "a scalar" : "an empty handle"));
      const Shape& shape = column.rows.shape();
      if (size_ >= 0 && shape[0] != size_)
        throw ArgumentError("from_arrays: columns of one length: '" + columns.front().name + "' has " +
                            std::to_string(size_) + " samples, '" + column.name + "' " + std::to_string(shape[0]));
      for (const FieldSpec& field : fields_)
        if (field.name == column.name)
          throw ArgumentError("from_arrays: fields have different names, got '" + column.name + "' twice");
      size_ = shape[0];
      fields_.push_back(
          {column.name, Shape(std::span(shape.begin() + 1, shape.end())), column.rows.dtype(), column.background});
      arrays_.push_back(show_rows(column.rows, 0, size_));
    }
  }

  std::int64_t size() const override { return size_; }
  const std::vector<FieldSpec>& fields() const override { return fields_; }
  const std::vector<Array>* arrays() const override { return &arrays_; }
  bool read(std::int64_t index, std::span<const Field> dst) const override {
    // From the first read on, the set borrows its arrays for the host: while it lives, devices may read but not write
    // them.
    std::call_once(once_, [this] {
      for (const Array& array : arrays_) views_.emplace_back(array, false, __FILE__, __LINE__);
    });
    for (std::size_t i = 0; i < dst.size(); ++i) {
      const std::size_t row = dst[i].bytes.size();
      const auto* const from = static_cast<const std::byte*>(views_[i].data());
      if (row > 0) std::memcpy(dst[i].bytes.data(), from + static_cast<std::size_t>(index) * row, row);
    }
    return true;
  }

 private:
  std::vector<FieldSpec> fields_;
  std::vector<Array> arrays_;
  mutable std::once_flag once_;
  mutable std::vector<detail::Borrow> views_;
  std::int64_t size_ = -1;
};

}  // namespace

DatasetPtr from_arrays(std::vector<ArrayColumn> columns) { return std::make_shared<ArraySet>(std::move(columns)); }

DatasetPtr preload(Engine& engine, const DatasetPtr& source, int threads) {
  const std::vector<FieldSpec> rows = detail::specs_of_all(source, threads);
  const EngineScope scope(engine);
  std::vector<ArrayColumn> columns;
  {
    std::vector<detail::Borrow> views;
    std::vector<std::span<std::byte>> bytes;
    for (const FieldSpec& spec : rows) {
      columns.push_back({spec.name, empty(spec.shape, spec.dtype), spec.background});
      views.emplace_back(columns.back().rows, true, __FILE__, __LINE__);
      bytes.emplace_back(static_cast<std::byte*>(views.back().data()),
                         static_cast<std::size_t>(spec.shape.size()) * bytes_of(spec.dtype));
    }
    detail::read_all(*source, bytes, threads);
  }
  return from_arrays(std::move(columns));
}

}  // namespace samebytes::data
