// Matrix instructions that kernels reach through inline assembly: which a CPU has and which work on a device.
// An instruction is tried with a small kernel whose numbers are checked, and one that stands for multiply-adds must be
// faster than they are, once for each device; what came of it is kept in instructions.json beside the tuner's stores.
// On a CPU, only CPUID and the system's word that it keeps the registers let a kernel run, since an unknown instruction
// ends the process; and a process that did not come back from a trial is noted before, so that the next one does not
// repeat it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/opencl.h"
#include "samebytes/device.h"

namespace samebytes::detail {

enum class Instruction : std::uint8_t {
  avx512_bf16,  // vdpbf16ps: f32 += two products of bf16, 16 lanes
  avx512_vnni,  // vpdpbusd: i32 += four products of u8 and i8, 16 lanes
  avx_vnni,     // the same with 8 lanes, as CPUs without AVX-512 have it
  amx_bf16,     // tdpbf16ps: f32 += 32 products of bf16 each, 16 x 16 of them
  amx_int8,     // tdpbssd: i32 += 64 products of i8 each, 16 x 16 of them
  ptx_mma,      // of NVIDIA's GPUs, mma.sync: f32 += 16 products of 16 bits each, 16 x 8 of them, with what feeds it
};

// Some of them, a bit each.
using Instructions = std::uint32_t;
constexpr Instructions kNoInstructions = 0, kAllInstructions = ~Instructions{0};
constexpr Instructions bit_of(Instruction instruction) { return 1U << static_cast<unsigned>(instruction); }

// "0": none, "1" or "": all, else names with commas between them. Throws ArgumentError for another word.
Instructions instructions_named(std::string_view words);

// What CPUID and the system say of the CPU that this process runs on; no instruction of a GPU. The first question for
// one of AMX asks the system for the tile registers, which Linux gives a process that asks.
bool cpu_has(Instruction instruction);

// Whether kernels of the device may use it. The first question for a device may build and run the kernel. Throws
// IoError for a damaged store.
bool can_use(Instruction instruction, const DeviceInfo& info, cl_device_id device);

// By device and instruction what came of a trial; nothing where there is no such store, or one of another format.
// Throws IoError for a damaged one.
using InstructionVerdicts = std::map<std::string, std::map<std::string, std::string>>;
InstructionVerdicts read_instruction_verdicts(const std::string& path);

// Each instruction of the device's kind with its verdict.
std::vector<MatrixInstruction> find_matrix_instructions(const DeviceInfo& info, cl_device_id device);

}  // namespace samebytes::detail
