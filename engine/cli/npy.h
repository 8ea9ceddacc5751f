// NumPy's files of one array (.npy, format 1 to 3): rows first, little-endian numbers and bools.
#pragma once

#include <string>

#include "samebytes/onnx.h"

namespace samebytes::cli {

// Throws IoError with the offset for a file that is missing, damaged, or holds what ONNX has no plain type for.
onnx::Tensor read_npy(const std::string& path);
void write_npy(const std::string& path, const onnx::Tensor& tensor);

// The tensor as a model takes it: floating numbers on the device.
onnx::Value value_of(const onnx::Tensor& tensor);
// Waits for the device. 16-bit numbers become float, for NumPy has no bfloat16.
onnx::Tensor tensor_of(const onnx::Value& value);

}  // namespace samebytes::cli
