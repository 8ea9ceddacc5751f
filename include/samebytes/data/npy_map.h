// An .npy file used where it lies: its bytes are mapped into memory, read from the disk when they are touched and given
// up when memory is short, so a file may be larger than it. Nothing is written back to the file.
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

// A handle: copies share the mapping, which lives as long as the last of them. Const; used by several threads at once.
// A file that another program cuts short while it is mapped ends this one (SIGBUS), as with every mapping.
class NpyMap {
 public:
  // Throws IoError as read_npy does, and for what cannot be used as it lies: a packed file, big-endian or Fortran
  // order, integers that would have to be converted, values that do not begin at a multiple of their own size. read_npy
  // reads these.
  explicit NpyMap(const std::string& path);

  const Shape& shape() const;
  Dtype dtype() const;
  std::span<const std::byte> bytes() const;
  // The values; throws ArgumentError where T is not the dtype.
  template <class T>
  std::span<const T> as() const {
    if (dtype_of<T> != dtype())
      throw ArgumentError("npy_map: holds " + std::string(name_of(dtype())) + ", read as " +
                          std::string(name_of(dtype_of<T>)));
    return {reinterpret_cast<const T*>(bytes().data()), bytes().size() / sizeof(T)};
  }

  // The values as an array of the current engine, over a mapping of its own that lives as long as the array: nothing is
  // copied where the device can use the pages themselves (see adopt; `verdict` says so), and what is written to the
  // array changes neither the file nor this map.
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
// Throws ArgumentError for no columns, two of one name, scalars, or columns of unequal length.
DatasetPtr mapped(std::vector<MappedColumn> columns);

}  // namespace samebytes::data
