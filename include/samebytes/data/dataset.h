// Dataset: the source of a Loader's samples. A data set states its number of samples and their fields, and decodes a
// sample straight into the caller's memory, the sample's row of a batch, without a sample object in between. Data sets
// are shared and const; several worker threads read them at once. This header also has the basic sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "samebytes/dtype.h"
#include "samebytes/error.h"
#include "samebytes/host_array.h"
#include "samebytes/random.h"
#include "samebytes/shape.h"

namespace samebytes {
class Array;
}

namespace samebytes::data {

struct CsvOptions;
struct Table;

// One named part of a sample: "image" [H, W, C], "label" [].
struct FieldSpec {
  std::string name;
  Shape shape = {};  // of one sample; {}: a number
  Dtype dtype = f32;
  float background = 0;  // value of an empty pixel after decoding; padding and shifting fill with it
};

// Destination of one field of one sample, or, for a Collate, of a whole batch. Does not own the memory.
struct Field {
  std::span<std::byte> bytes;
  Shape shape;
  Dtype dtype = f32;
  float background = 0;

  // The values; throws ArgumentError if T is not the dtype.
  template <class T>
  std::span<T> as() const {
    if (dtype_of<T> != dtype)
      throw ArgumentError("field: holds " + std::string(name_of(dtype)) + ", used as " +
                          std::string(name_of(dtype_of<T>)));
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

inline constexpr std::int64_t kEndless = -1;  // the size of a source without end

class Dataset {
 public:
  virtual ~Dataset() = default;

  // Number of samples, or kEndless if it is unknown or infinite.
  virtual std::int64_t size() const = 0;
  virtual const std::vector<FieldSpec>& fields() const = 0;
  // Writes every value of sample `index` to `dst`, one Field for each of fields() in their order. Returns false,
  // without writing, if a source of unknown length ended before `index`. Called from several threads at once, unless
  // is_sequential(). The loop over the batches rethrows its exceptions.
  virtual bool read(std::int64_t index, std::span<const Field> dst) const = 0;
  // True if the source has state: one thread at a time then calls read() with 0, 1, 2, ...
  virtual bool is_sequential() const { return false; }
  // For sets whose samples lie contiguously in memory that devices read: one array [size(), sizes of the field...] for
  // each of fields(), which must not change. A Loader then gives batches of consecutive samples as views of them and
  // calls no read(). Null for other sets.
  virtual const std::vector<Array>* arrays() const { return nullptr; }
  // Called before the first read() of every pass over the data.
  virtual void begin_pass(std::int64_t epoch) const { (void)epoch; }
};

using DatasetPtr = std::shared_ptr<const Dataset>;

// A column of an in-memory set: row i is the field of sample i.
struct Column {
  std::string name;
  HostArray rows;  // [N, sizes of one sample...]
  float background = 0;
};
// Throws ArgumentError for no columns, duplicate names, or columns of unequal length.
DatasetPtr in_memory(std::vector<Column> columns);

// A table as fields "values" [columns] f32 and, if it has labels, "label" [].
DatasetPtr from_table(Table table);

// Generates samples on demand: `make` writes sample `index`, may run in several threads at once, and must depend only
// on the index and its captures. size: a number or kEndless.
using MakeSample = std::function<void(std::int64_t index, std::span<const Field> dst)>;
DatasetPtr generate(std::int64_t size, std::vector<FieldSpec> fields, MakeSample make);

// Samples from a source with state, such as a socket or a simulation: `next` writes the next sample and returns true,
// or returns false at the end. It runs in one thread at a time. `restart`, if given, is called before every pass but
// the first; without it a second pass continues where the first stopped. A loop that is left early loses the samples
// read ahead.
using NextSample = std::function<bool(std::span<const Field> dst)>;
DatasetPtr stream(std::vector<FieldSpec> fields, NextSample next, std::function<void()> restart = nullptr);

// Samples first .. first + count - 1 of another set. Throws ArgumentError if it has fewer or is sequential.
DatasetPtr slice(DatasetPtr source, std::int64_t first, std::int64_t count);

}  // namespace samebytes::data
