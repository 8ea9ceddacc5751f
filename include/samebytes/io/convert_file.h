// Weights from one kind of file to another: ONNX models, safetensors files, checkpoints of a run (run_state.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "samebytes/dtype.h"

namespace samebytes::io {

struct ConvertOptions {
  std::optional<Dtype> dtype = {};  // of floating tensors in the safetensors file: f64, f32, f16 or bf16
  std::string graph = {};           // for an ONNX file made of weights: the model whose weights they replace
  // Of a checkpoint: the registered network. Empty: the only one, or "model".
  std::string part = {};
};

struct Conversion {
  std::size_t tensors = 0, values = 0;
  std::size_t left_out = 0;  // tensors of a checkpoint that are no weights, of optimizers and averages
};

// The kinds are known from the files: `to` by its ending, .onnx or .safetensors. Writes atomically.
//   model.onnx -> weights.safetensors     names of the initializers
//   checkpoint -> weights.safetensors     names without the part's
//   a.safetensors -> b.safetensors        with `dtype`
//   weights.safetensors -> model.onnx     needs `graph`; names, shapes and kinds must be its own
// ONNX needs a current engine. Throws ArgumentError for other pairs and options that do not fit, IoError for files.
Conversion convert_file(const std::string& from, const std::string& to, const ConvertOptions& options = {});

}  // namespace samebytes::io
