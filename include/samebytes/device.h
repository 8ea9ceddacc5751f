// What a device is and what Samebytes chose for it. Plain values, printed by `samebytes devices`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace samebytes {

// How host and device share bytes. Best first: system, fine, usm, coarse, hostptr, copy. See docs/design.md.
enum class MemoryMode : std::uint8_t {
  system,   // the device reads any malloc pointer
  fine,     // fine-grained buffer SVM
  coarse,   // coarse-grained SVM: mapped for the host, unmapped for the device
  hostptr,  // no SVM: a mapped CL_MEM_USE_HOST_PTR buffer over page-aligned memory
  copy,     // nothing shared: explicit, counted staging
  usm,      // cl_intel_unified_shared_memory: the host's memory that the device reads where it lies
};
const char* name_of(MemoryMode mode);  // "fine"

// Which kernels run: explicit vectors and register tiles, or local-memory tiles.
enum class Personality : std::uint8_t { cpu, gpu };
const char* name_of(Personality personality);  // "cpu"

struct DeviceInfo {
  std::string id;    // "cpu:0", "gpu:1": type and rank among the devices of that type; "cpu:0.1": part of one
  int index = 0;     // place in the list of all devices
  std::string name;  // CL_DEVICE_NAME
  std::string vendor;
  std::string platform;         // CL_PLATFORM_NAME
  std::string driver;           // CL_DRIVER_VERSION
  std::string opencl_c;         // "1.2"
  std::string type;             // "cpu", "gpu", "accelerator"
  std::string svm;              // "none", "coarse", "fine", "fine+atomics", "system"
  bool unified_memory = false;  // CL_DEVICE_HOST_UNIFIED_MEMORY
  bool has_f16 = false;         // cl_khr_fp16 arithmetic
  bool has_f64 = false;         // cl_khr_fp64
  bool has_fma = false;         // CL_FP_FMA in single precision
  int cores = 1;                // compute units
  int vector_width = 1;         // native float width
  bool has_usm = false;         // cl_intel_unified_shared_memory, with memory of the host
  std::size_t memory_bytes = 0;
  std::size_t max_allocation_bytes = 0;
  std::size_t alignment_bytes = 0;  // CL_DEVICE_MEM_BASE_ADDR_ALIGN
  std::size_t max_group_size = 1;
  MemoryMode memory_mode = MemoryMode::copy;
  std::string memory_reason;  // why this mode, one sentence
  Personality personality = Personality::gpu;
  std::string personality_reason;
  std::string refused;  // not empty: Samebytes will not use this device, and why
};

// All devices of all platforms, best first, with what SAMEBYTES_MEMORY and SAMEBYTES_PERSONALITY ask for applied; empty
// on a machine without devices. Throws ArgumentError for an unknown value of those two.
std::vector<DeviceInfo> list_devices();

// What a device computed in a probe of about a millisecond: 10^9 multiplications and additions a second, over all its
// cores. It decides which kernels a CPU device gets whose driver does not announce fused multiply-add.
struct KernelSpeed {
  double vectors = 0;   // float16 in groups of one item, with fma(): how the cpu kernels work
  double items = 0;     // single floats in groups of 64 items, with fma(): how the gpu kernels work
  double products = 0;  // float16 in groups of one item, with a multiplication and an addition
};
// Measures it now. Throws DeviceError where the device cannot run the probe.
KernelSpeed measure_kernel_speed(const DeviceInfo& device);

// Seconds until the device owns bytes that the host wrote, and until the host may read what the device owned.
struct HandOver {
  MemoryMode mode = MemoryMode::copy;
  double to_device = 0, to_host = 0;
};
// One entry for each mode that the device can use, best first. Measures now, with a queue and a block of its own; a
// mode that fails is left out, and the log says why.
std::vector<HandOver> measure_hand_over(const DeviceInfo& device, std::size_t bytes = std::size_t{64} << 20);

// An instruction that multiplies narrow types and sums in wider ones, and whether kernels may use it on a device.
struct MatrixInstruction {
  std::string name;     // "avx512_bf16", "avx512_vnni", "avx_vnni", "amx_bf16", "amx_int8"; of NVIDIA's GPUs "ptx_mma"
  bool works = false;   // the device has it, and a small kernel gave the right numbers
  std::string trouble;  // why it does not
};
// All that Samebytes knows of for a device of its kind, each tried once: a CPU is asked first, and an instruction that
// it lacks is not run. What came of it is kept in instructions.json beside the tuner's stores.
std::vector<MatrixInstruction> find_matrix_instructions(const DeviceInfo& device);

// All of a device. Empty where the device is refused or cannot run the probe.
struct DeviceFigures {
  std::optional<KernelSpeed> speed;
  std::vector<MatrixInstruction> instructions;
  std::vector<HandOver> hand_over;
  std::size_t handed_over = std::size_t{64} << 20;  // bytes
};
DeviceFigures measure_device(const DeviceInfo& device);

// Why there is no device and what to install, one or two sentences; empty where there is one.
// Knows about a missing ICD, an empty OCL_ICD_VENDORS and a kernel cache folder that PoCL cannot write.
std::string explain_no_device();

// For people: the devices with their names, sizes, modes and kernels, and why. Each may have what was measured of it.
std::string devices_text(const std::vector<DeviceInfo>& devices, const std::vector<DeviceFigures>& figures = {});
// One line of JSON, without its end; `trouble` is explain_no_device().
std::string devices_json(const std::vector<DeviceInfo>& devices, const std::string& trouble = {},
                         const std::vector<DeviceFigures>& figures = {});

// Asks PoCL to pin its threads to cores, and to use at most `threads` of them (0: all that this process may use), by
// setting POCL_AFFINITY and the variables of PoCL's versions (POCL_MAX_PTHREAD_COUNT, POCL_CPU_MAX_CU_COUNT,
// POCL_MAX_COMPUTE_UNITS) in the environment of this process unless they are set. Works only
// before the first OpenCL call, while no other thread runs. Pins only where the process may use every core of the
// machine. The library never calls it; the command does.
void pin_threads(int threads = 0);

}  // namespace samebytes
