#include "samebytes/data/preload.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace samebytes::data {

DatasetPtr preload(DatasetPtr source, int threads) {
  if (!source) throw ArgumentError("preload: needs a data set, none came");
  const std::int64_t size = source->size();
  if (size == kEndless) throw ArgumentError("preload: needs a known number of samples, a source without end came");
  if (threads < 0) throw ArgumentError("preload: threads is 0 or more, " + std::to_string(threads) + " came");
  if (threads == 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (source->is_sequential()) threads = 1;
  std::vector<Column> columns;
  for (const FieldSpec& spec : source->fields()) {
    if (spec.shape.rank() == Shape::kMaxRank)
      throw ArgumentError("preload: field '" + spec.name + "' " + spec.shape.to_string() +
                          " has no axis left for the samples");
    Shape shape{size};
    for (const std::int64_t length : spec.shape) shape.push_back(length);
    columns.push_back({spec.name, HostArray(shape, spec.dtype), spec.background});
  }
  source->begin_pass(0);
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    std::vector<Field> row;
    for (const FieldSpec& spec : source->fields()) row.push_back({{}, spec.shape, spec.dtype, spec.background});
    try {
      for (std::int64_t index = next++; index < size; index = next++) {
        for (std::size_t f = 0; f < row.size(); ++f) {
          const std::size_t bytes = columns[f].rows.bytes.size() / static_cast<std::size_t>(size);
          row[f].bytes = std::span(columns[f].rows.bytes).subspan(static_cast<std::size_t>(index) * bytes, bytes);
        }
        if (!source->read(index, row))
          throw ArgumentError("preload: the source ended at sample " + std::to_string(index) + " of " +
                              std::to_string(size));
      }
    } catch (...) {
      next = size;  // the others stop too
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
  return in_memory(std::move(columns));
}

}  // namespace samebytes::data
