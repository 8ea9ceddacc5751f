// NumPy's files of one array (.npy, format 1 to 3) as exact tensors of ONNX models, with the types that an Array does
// not have: rows first, little-endian numbers and bools. data/npy.h reads them as arrays.
#pragma once

#include <string>

#include "samebytes/onnx.h"

namespace samebytes::io {

// Throws IoError with the offset for a file that is missing, damaged, or holds what ONNX has no plain type for. Two
// bytes without a meaning (V2) are bfloat16: what packages that add this type to NumPy write.
onnx::Tensor read_tensor_npy(const std::string& path);
// Atomically. Throws IoError, ArgumentError for a type that NumPy does not have.
void write_tensor_npy(const std::string& path, const onnx::Tensor& tensor);

// The tensor as a model takes it: floating numbers on the device, in the current engine.
onnx::Value value_of(const onnx::Tensor& tensor);
// Waits for the device.
onnx::Tensor tensor_of(const onnx::Value& value);

}  // namespace samebytes::io
