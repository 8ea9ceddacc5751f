#include "samebytes/data/dataset.h"

#include <mutex>
#include <utility>

#include "samebytes/array.h"
#include "samebytes/data/csv.h"
#include "samebytes/slot.h"

namespace samebytes::data {
namespace {

void check_fields(const char* what, const std::vector<FieldSpec>& fields) {
  if (fields.empty()) throw ArgumentError(std::string(what) + ": a sample has at least one field, got none");
  for (std::size_t i = 0; i < fields.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (fields[i].name == fields[j].name)
        throw ArgumentError(std::string(what) + ": fields have different names, got '" + fields[i].name + "' twice");
}

class InMemory final : public Dataset {
 public:
  explicit InMemory(std::vector<Column> columns) : columns_(std::move(columns)) {
    for (const Column& column : columns_) {
      const Shape& shape = column.rows.shape;
      if (shape.rank() == 0)
        throw ArgumentError("in_memory: '" + column.name + "' wants a first axis that counts samples, got a scalar");
      if (size_ >= 0 && shape[0] != size_)
        throw ArgumentError("in_memory: columns of one length: '" + columns_.front().name + "' has " +
                            std::to_string(size_) + " samples, '" + column.name + "' " + std::to_string(shape[0]));
      if (column.rows.bytes.size() != static_cast<std::size_t>(shape.size()) * bytes_of(column.rows.dtype))
        throw ArgumentError("in_memory: '" + column.name + "' is " + std::string(name_of(column.rows.dtype)) + " " +
                            shape.to_string() + ", its bytes are " + std::to_string(column.rows.bytes.size()));
      size_ = shape[0];
      const Shape sample(std::span(shape.begin() + 1, shape.end()));
      fields_.push_back({column.name, sample, column.rows.dtype, column.background});
      row_bytes_.push_back(static_cast<std::size_t>(sample.size()) * bytes_of(column.rows.dtype));
    }
    check_fields("in_memory", fields_);
  }

  std::int64_t size() const override { return size_; }
  const std::vector<FieldSpec>& fields() const override { return fields_; }
  bool read(std::int64_t index, std::span<const Field> dst) const override {
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (row_bytes_[i] > 0)
        std::memcpy(dst[i].bytes.data(),
                    columns_[i].rows.bytes.data() + static_cast<std::size_t>(index) * row_bytes_[i], row_bytes_[i]);
    return true;
  }

 private:
  std::vector<Column> columns_;
  std::vector<FieldSpec> fields_;
  std::vector<std::size_t> row_bytes_;
  std::int64_t size_ = -1;
};

class Generated final : public Dataset {
 public:
  Generated(std::int64_t size, std::vector<FieldSpec> fields, MakeSample make)
      : size_(size), fields_(std::move(fields)), make_(std::move(make)) {
    check_fields("generate", fields_);
    if (size_ < 0 && size_ != kEndless)
      throw ArgumentError("generate: size must be 0 or more, or kEndless, got " + std::to_string(size_));
    if (!make_) throw ArgumentError("generate: expected a function that makes a sample, got an empty one");
  }

  std::int64_t size() const override { return size_; }
  const std::vector<FieldSpec>& fields() const override { return fields_; }
  bool read(std::int64_t index, std::span<const Field> dst) const override {
    make_(index, dst);
    return true;
  }

 private:
  std::int64_t size_;
  std::vector<FieldSpec> fields_;
  MakeSample make_;
};

class Stream final : public Dataset {
 public:
  Stream(std::vector<FieldSpec> fields, NextSample next, std::function<void()> restart)
      : fields_(std::move(fields)), next_(std::move(next)), restart_(std::move(restart)) {
    check_fields("stream", fields_);
    if (!next_) throw ArgumentError("stream: expected a function that gives the next sample, got an empty one");
  }

  std::int64_t size() const override { return kEndless; }
  const std::vector<FieldSpec>& fields() const override { return fields_; }
  bool is_sequential() const override { return true; }
  bool read(std::int64_t, std::span<const Field> dst) const override {
    const std::lock_guard lock(mutex_);
    return next_(dst);
  }
  void begin_pass(std::int64_t) const override {
    const std::lock_guard lock(mutex_);
    if (std::exchange(started_, true) && restart_) restart_();
  }

 private:
  std::vector<FieldSpec> fields_;
  NextSample next_;
  std::function<void()> restart_;
  mutable std::mutex mutex_;
  mutable bool started_ = false;
};

class Slice final : public Dataset {
 public:
  Slice(DatasetPtr source, std::int64_t first, std::int64_t count)
      : source_(std::move(source)), first_(first), count_(count) {
    if (const std::vector<Array>* const whole = source_->arrays())
      for (const Array& array : *whole) arrays_.push_back(show_rows(array, first, first + count));
  }

  std::int64_t size() const override { return count_; }
  const std::vector<FieldSpec>& fields() const override { return source_->fields(); }
  const std::vector<Array>* arrays() const override { return arrays_.empty() ? nullptr : &arrays_; }
  bool read(std::int64_t index, std::span<const Field> dst) const override {
    return source_->read(first_ + index, dst);
  }
  void begin_pass(std::int64_t epoch) const override { source_->begin_pass(epoch); }

 private:
  DatasetPtr source_;
  std::int64_t first_, count_;
  std::vector<Array> arrays_;
};

}  // namespace

DatasetPtr in_memory(std::vector<Column> columns) { return std::make_shared<InMemory>(std::move(columns)); }

DatasetPtr from_table(Table table) {
  std::vector<Column> columns;
  const bool labelled = table.labels.size() > 0;
  columns.push_back({"values", std::move(table.values)});
  if (labelled) columns.push_back({"label", std::move(table.labels)});
  return in_memory(std::move(columns));
}

DatasetPtr generate(std::int64_t size, std::vector<FieldSpec> fields, MakeSample make) {
  return std::make_shared<Generated>(size, std::move(fields), std::move(make));
}

DatasetPtr stream(std::vector<FieldSpec> fields, NextSample next, std::function<void()> restart) {
  return std::make_shared<Stream>(std::move(fields), std::move(next), std::move(restart));
}

DatasetPtr slice(DatasetPtr source, std::int64_t first, std::int64_t count) {
  if (!source) throw ArgumentError("slice: expected a data set, got none");
  if (source->is_sequential()) throw ArgumentError("slice: expected a set that reads any sample, got a stream");
  const std::int64_t size = source->size();
  if (first < 0 || count < 0 || (size != kEndless && first > size - count))
    throw ArgumentError("slice: samples " + std::to_string(first) + " to " + std::to_string(first + count - 1) +
                        " of a set of " + std::to_string(size));
  return std::make_shared<Slice>(std::move(source), first, count);
}

}  // namespace samebytes::data
