// What a device is and what Samebytes chose for it. Plain values, printed by `samebytes devices`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace samebytes {

// How host and device share bytes, best first. See docs/design.md.
enum class MemoryMode : std::uint8_t {
  system,   // the device reads any malloc pointer
  fine,     // fine-grained buffer SVM
  coarse,   // coarse-grained SVM: mapped for the host, unmapped for the device
  hostptr,  // no SVM: a mapped CL_MEM_USE_HOST_PTR buffer over page-aligned memory
  copy,     // nothing shared: explicit, counted staging
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

// Why there is no device and what to install, one or two sentences; empty where there is one.
// Knows about a missing ICD, an empty OCL_ICD_VENDORS and a kernel cache folder that PoCL cannot write.
std::string explain_no_device();

// For people: the devices with their names, sizes, modes and kernels, and why.
std::string devices_text(const std::vector<DeviceInfo>& devices);
// One line of JSON, without its end; `trouble` is explain_no_device().
std::string devices_json(const std::vector<DeviceInfo>& devices, const std::string& trouble = {});

// Asks PoCL to pin its threads to cores, and to use at most `threads` of them (0: all that this process may use), by
// setting POCL_AFFINITY and POCL_MAX_PTHREAD_COUNT in the environment of this process unless they are set. Works only
// before the first OpenCL call, while no other thread runs. Pins only where the process may use every core of the
// machine. The library never calls it; the command does.
void pin_threads(int threads = 0);

}  // namespace samebytes
