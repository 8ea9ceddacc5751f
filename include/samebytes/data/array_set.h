// A data set over arrays: its samples lie in memory that devices read. A Loader that takes neighbours in their order
// (no shuffling, no transforms, the default collate, arrays of its engine) then gives batches that are views of the
// set: nothing is written, and TransferReport's bytes_gathered stays where it is. In any other order it copies rows, as
// from every set. The arrays may be mapped files (NpyMap::array), memory of your own (adopt) or what preload() read.
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
// The set and every batch that shows it keep the arrays' memory. What is written to the arrays later shows in both, so
// write nothing during a pass; batches themselves are not to be written to (show_rows, slot.h). Throws ArgumentError
// for no columns, two of one name, columns of unequal length, cells and arrays that are not contiguous.
DatasetPtr from_arrays(std::vector<ArrayColumn> columns);

// preload() (preload.h) into memory of the engine: reads every sample once, and a pass in order gathers nothing more.
DatasetPtr preload(Engine& engine, const DatasetPtr& source, int threads = 0);

}  // namespace samebytes::data
