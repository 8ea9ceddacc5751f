// A trace writes what arrays are made of; what the host computes from their values would be a constant of the file.
#pragma once

#include <span>

#include "samebytes/array.h"

namespace samebytes::onnx {

struct Call;

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
// Whether a node's integers, of which the host does not know all, are computed on the device while a model is traced:
// in i32, which is what a written file has.
bool stays_on_device(const Call& call);
// Throws ArgumentError where `array` depends on such an input.
void check_readable(const Array& array);

}  // namespace samebytes::onnx
