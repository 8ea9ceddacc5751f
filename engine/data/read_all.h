// Reads every sample of a set once, in several threads; both kinds of preload() use it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "samebytes/data/dataset.h"

namespace samebytes::detail {

// The fields with a first axis of all samples. Throws as preload() does for its arguments.
std::vector<data::FieldSpec> specs_of_all(const data::DatasetPtr& source, int threads);
// Reads sample i of field f into row i of `fields[f]`. Requires: specs_of_all() passed.
void read_all(const data::Dataset& source, std::span<const std::span<std::byte>> fields, int threads);

}  // namespace samebytes::detail
