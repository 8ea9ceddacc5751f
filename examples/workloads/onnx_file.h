// A model of another framework as a workload: an ONNX file, trained and tested on a folder of labelled samples, or
// measured on made-up inputs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "samebytes/onnx.h"
#include "workloads/workload.h"

namespace samebytes::workloads {

inline bool is_model_file(const std::string& name) { return name.ends_with(".onnx"); }

// Reads what the file declares and, with --data, the folder. Throws OptionError for a model that is no classifier of
// what the folder holds, IoError.
Workload onnx_workload(const std::string& path, const WorkloadOptions& options);

// Sizes that a model leaves open, by their symbols, or by "INPUT.AXIS" where they have none or for one place alone.
using Symbols = std::map<std::string, std::int64_t>;
// Of words SYMBOL=N. Throws OptionError.
Symbols symbols_of(const std::vector<std::string>& words);
// Throws OptionError for a name that no size of the inputs has.
void check_symbols(const Symbols& symbols, const std::vector<onnx::Port>& inputs);
// The sizes of an input, from axis `first` on. Throws OptionError, naming --dim, for one that is open.
std::vector<std::int64_t> sizes_of(const onnx::Port& port, const Symbols& symbols, std::size_t first = 0);
// An array that the model takes for such an input: zeros, of reals or of i32, u8 or bool.
Array empty_input(onnx::Type type, const std::vector<std::int64_t>& sizes);

}  // namespace samebytes::workloads
