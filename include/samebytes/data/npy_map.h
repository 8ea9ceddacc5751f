// A memory-mapped .npy file: the system reads its pages from the disk on first access and drops them when memory is
// low, so a file may be larger than memory. The file is never written.
//   const data::NpyMap images("images.npy"), labels("labels.npy");
//   const data::DatasetPtr set = data::mapped({{"image", images}, {"label", labels}});   // row by row into the batches
//   const Array all = images.array();                                                    // the file as one array
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/data/dataset.h"

namespace samebytes::data {

// A handle: copies share the mapping, which lives as long as the last of them. Const; several threads may use it at
// once. As with every mapping, this program gets SIGBUS if another one truncates the mapped file.
class NpyMap {
 public:
  // Throws IoError as read_npy does, and for files that cannot be mapped: compressed, big-endian or in Fortran order,
  // with integers that need conversion, or with misaligned values. read_npy reads these.
  explicit NpyMap(const std::string& path);

  const Shape& shape() const;
  Dtype dtype() const;
  std::span<const std::byte> bytes() const;
  // The values; throws ArgumentError if T is not the dtype.
  template <class T>
  std::span<const T> as() const {
    if (dtype_of<T> != dtype())
      throw ArgumentError("npy_map: holds " + std::string(name_of(dtype())) + ", read as " +
                          std::string(name_of(dtype_of<T>)));
    return {reinterpret_cast<const T*>(bytes().data()), bytes().size() / sizeof(T)};
  }

  // The values as an array of the current engine, over a separate mapping that lives as long as the array. Copies
  // nothing if the device can use the pages themselves (see adopt; `verdict` tells). Writes to the array change neither
  // the file nor this map.
  Array array(Adoption* verdict = nullptr) const;

 private:
  struct Mapping;
  std::shared_ptr<const Mapping> mapping_;
};

// A column of a set of mapped files: row i is the field of sample i.
struct MappedColumn {
  std::string name;
  NpyMap rows;  // [N, sizes of one sample...]
  float background = 0;
};
// Throws ArgumentError for no columns, duplicate names, scalars, or columns of unequal length.
DatasetPtr mapped(std::vector<MappedColumn> columns);

}  // namespace samebytes::data
