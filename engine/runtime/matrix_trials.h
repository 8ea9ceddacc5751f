// The small kernels that try a matrix instruction on a device.
#pragma once

#include <string>

#include "runtime/matrix_instructions.h"
#include "runtime/opencl.h"

namespace samebytes::detail {

// Builds and runs the kernel of an instruction that the CPU has, or that the driver's compiler knows. Empty if its
// numbers are right and, where it stands for multiply-adds, it is faster than they are; else why kernels do without it.
// Throws cl::Error where the driver fails.
std::string try_instruction(Instruction instruction, cl_device_id handle);

}  // namespace samebytes::detail
