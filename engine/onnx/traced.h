// A trace writes what arrays are made of; what the host computes from their values would be a constant of the file.
#pragma once

#include <span>

#include "samebytes/array.h"

namespace samebytes::onnx {

// While one lives, on this thread: no operator may read the values of what these arrays, the inputs of a trace, make.
class StaysOnDevice {
 public:
  explicit StaysOnDevice(std::span<const Array> inputs);
  ~StaysOnDevice();
  StaysOnDevice(const StaysOnDevice&) = delete;
  StaysOnDevice& operator=(const StaysOnDevice&) = delete;

 private:
  std::span<const Array> before_;
};

bool is_tracing();
// Throws ArgumentError where `array` depends on such an input.
void check_readable(const Array& array);

}  // namespace samebytes::onnx
