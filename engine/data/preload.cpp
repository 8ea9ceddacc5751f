#include "samebytes/data/preload.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "data/read_all.h"

namespace samebytes {

namespace detail {

std::vector<data::FieldSpec> specs_of_all(const data::DatasetPtr& source, int threads) {
  if (!source) throw ArgumentError("preload: expected a data set, got none");
  const std::int64_t size = source->size();
  if (size == data::kEndless)
    throw ArgumentError("preload: expected a known number of samples, got a source without end");
  if (threads < 0) throw ArgumentError("preload: threads must be 0 or more, got " + std::to_string(threads));
  std::vector<data::FieldSpec> specs;
  for (const data::FieldSpec& spec : source->fields()) {
    if (spec.shape.rank() == Shape::kMaxRank)
      throw ArgumentError("preload: field '" + spec.name + "' " + spec.shape.to_string() +
                          " has no axis left for the samples");
    Shape shape{size};
    for (const std::int64_t length : spec.shape) shape.push_back(length);
    specs.push_back({spec.name, shape, spec.dtype, spec.background});
  }
  return specs;
}

void read_all(const data::Dataset& source, std::span<const std::span<std::byte>> fields, int threads) {
  const std::int64_t size = source.size();
  if (threads == 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (source.is_sequential()) threads = 1;
  source.begin_pass(0);
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    std::vector<data::Field> row;
    for (const data::FieldSpec& spec : source.fields()) row.push_back({{}, spec.shape, spec.dtype, spec.background});
    try {
      for (std::int64_t index = next++; index < size; index = next++) {
        for (std::size_t f = 0; f < row.size(); ++f) {
          const std::size_t bytes = fields[f].size() / static_cast<std::size_t>(size);
          row[f].bytes = fields[f].subspan(static_cast<std::size_t>(index) * bytes, bytes);
        }
        if (!source.read(index, row))
          throw ArgumentError("preload: the source ended at sample " + std::to_string(index) + " of " +
                              std::to_string(size));
      }
    } catch (...) {
      next = size;  // stops the other threads
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (int i = 1; i < threads; ++i) others.emplace_back(work);
    } catch (const std::system_error&) {  // those that are there do it
    }
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace detail

namespace data {

DatasetPtr preload(const DatasetPtr& source, int threads) {
  std::vector<Column> columns;
  for (const FieldSpec& spec : detail::specs_of_all(source, threads))
    columns.push_back({spec.name, HostArray(spec.shape, spec.dtype), spec.background});
  std::vector<std::span<std::byte>> bytes;
  bytes.reserve(columns.size());
  for (Column& column : columns) bytes.emplace_back(column.rows.bytes);
  detail::read_all(*source, bytes, threads);
  return in_memory(std::move(columns));
}

}  // namespace data

}  // namespace samebytes
