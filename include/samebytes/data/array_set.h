// A data set over arrays: its samples lie in memory that devices read. A Loader that reads them in order (no shuffling,
// no transforms, the default collate, arrays of its engine) yields batches that are views of the set: it copies
// nothing, and TransferReport's bytes_gathered does not grow. In any other order it copies rows, as from every set. The
// arrays may be mapped files (NpyMap::array), the user's own memory (adopt) or the result of preload().
//   auto test = data::from_arrays({{"image", images}, {"label", labels}});
//   for (const auto& [image, label] : data::Loader(engine, test, {.batch = 256})) ...
#pragma once

#include <string>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/data/dataset.h"

namespace samebytes {
class Engine;
}

namespace samebytes::data {

struct ArrayColumn {
  std::string name;
  Array rows;  // [N, sizes of one sample...]; evaluated at once
  float background = 0;
};
// The set and every batch that views it keep the arrays' memory alive. Later writes to the arrays show in both, so
// write nothing during a pass; batches themselves are read-only (show_rows, slot.h). Throws ArgumentError for no
// columns, duplicate names, columns of unequal length, cells, and arrays that are not contiguous.
DatasetPtr from_arrays(std::vector<ArrayColumn> columns);

// preload() (preload.h) into the engine's memory: reads every sample once; a pass in order then copies nothing.
DatasetPtr preload(Engine& engine, const DatasetPtr& source, int threads = 0);

}  // namespace samebytes::data
