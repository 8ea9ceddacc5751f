#include "runtime/matrix_instructions.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "core/mutex.h"
#include "runtime/devices.h"
#include "runtime/tuning.h"
#include "samebytes/error.h"
#include "samebytes/io/files.h"
#include "samebytes/log.h"

namespace samebytes {
namespace detail {
namespace {

using Json = nlohmann::ordered_json;

// Two operands and a sum of 16 words of 32 bits each, of which an instruction may take 8.
constexpr std::size_t kWords = 16;
using Words = std::array<std::uint32_t, kWords>;

// One kernel; an instruction of 8 lanes does its work twice.
constexpr const char* kTrial = R"(
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void trial(__global const uint* a, __global const uint* b, __global uint* c) {
  for (int i = 0; i < 16; i += LANES) {
    VECTOR sum = *(__global LOOSE*)(c + i);
    const VECTOR x = *(__global const LOOSE*)(a + i), y = *(__global const LOOSE*)(b + i);
    __asm__(CODE : "+v"(sum) : "v"(x), "v"(y));
    *(__global LOOSE*)(c + i) = sum;
  }
}
)";

std::uint32_t word_of(float value) {
  std::uint32_t word = 0;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

// Small whole numbers, so that every sum is exact: lane i, value j of its word.
int small_value(std::size_t i, std::size_t j, int step) {
  constexpr int kValues = 23;
  return static_cast<int>(i * 7 + j * 5 + static_cast<std::size_t>(step)) % kValues - kValues / 2;
}

struct TrialData {
  Words a, b, c, want;
};

TrialData pairs_of_bf16() {
  TrialData t{};
  for (std::size_t i = 0; i < kWords; ++i) {
    int sum = small_value(i, 0, 3);
    t.c[i] = word_of(static_cast<float>(sum));
    for (std::size_t j = 0; j < 2; ++j) {
      const int x = small_value(i, j, 1), y = small_value(i, j, 2);
      t.a[i] |= word_of(static_cast<float>(x)) >> 16 << 16 * j;
      t.b[i] |= word_of(static_cast<float>(y)) >> 16 << 16 * j;
      sum += x * y;
    }
    t.want[i] = word_of(static_cast<float>(sum));
  }
  return t;
}

// The first operand of vpdpbusd is unsigned: its values pass 127.
TrialData fours_of_bytes() {
  TrialData t{};
  constexpr int kOffset = 140;
  for (std::size_t i = 0; i < kWords; ++i) {
    int sum = small_value(i, 0, 3);
    t.c[i] = static_cast<std::uint32_t>(sum);
    for (std::size_t j = 0; j < 4; ++j) {
      const int x = kOffset + small_value(i, j, 1), y = small_value(i, j, 2);
      t.a[i] |= static_cast<std::uint32_t>(x) << 8 * j;
      t.b[i] |= (static_cast<std::uint32_t>(y) & 0xffU) << 8 * j;
      sum += x * y;
    }
    t.want[i] = static_cast<std::uint32_t>(sum);
  }
  return t;
}

struct Row {
  CpuInstruction instruction;
  const char* name;
  const char* code;  // AT&T: the last operand is overwritten
  int lanes;
  bool is_float;
  TrialData (*data)();
};
constexpr Row kInstructionRows[] = {
    {CpuInstruction::avx512_bf16, "avx512_bf16", "vdpbf16ps %2, %1, %0", 16, true, pairs_of_bf16},
    {CpuInstruction::avx512_vnni, "avx512_vnni", "vpdpbusd %2, %1, %0", 16, false, fours_of_bytes},
    {CpuInstruction::avx_vnni, "avx_vnni", "{vex} vpdpbusd %2, %1, %0", 8, false, fours_of_bytes},
};

const Row& row_of(CpuInstruction instruction) { return kInstructionRows[static_cast<std::size_t>(instruction)]; }

// Builds and runs the kernel. Empty if its numbers are right.
std::string try_instruction(const Row& row, cl_device_id handle) {
  const cl::Device device = borrow(handle);
  const cl::Context context(device);
  const cl::CommandQueue queue = make_queue(context, device, 0, device.getInfo<CL_DEVICE_NAME>());
  const std::string vector = std::string(row.is_float ? "float" : "int") + std::to_string(row.lanes);
  const std::string head = "#define LANES " + std::to_string(row.lanes) + "\n#define CODE \"" + row.code +
                           "\"\ntypedef " + vector + " VECTOR;\ntypedef " + vector +
                           " LOOSE __attribute__((aligned(4)));\n";
  const cl::Program program(context, head + kTrial);
  if (clBuildProgram(program(), 1, &device(), "-cl-std=CL1.2", nullptr, nullptr) != CL_SUCCESS)
    return "the driver's compiler does not take it";
  cl::Kernel kernel(program, "trial");
  TrialData data = row.data();
  cl::Buffer buffers[3];
  Words* const words[3] = {&data.a, &data.b, &data.c};
  for (cl_uint i = 0; i < 3; ++i) {
    buffers[i] = cl::Buffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(Words), words[i]->data());
    kernel.setArg(i, buffers[i]);
  }
  queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(1), cl::NDRange(1));
  Words came{};
  queue.enqueueReadBuffer(buffers[2], CL_TRUE, 0, sizeof came, came.data());
  return came == data.want ? "" : "a kernel with it gave wrong numbers";
}

constexpr const char* kInstructionsAbout =
    "Which matrix instructions of the CPU kernels may use on a device: a small kernel tried each one that the CPU has. "
    "Remove the file to try again.";
constexpr int kInstructionsFormat = 1;
constexpr const char* kWorks = "works";
constexpr const char* kTrying = "process ";  // and its number, before a kernel runs

std::string instructions_path(const DeviceInfo& info) {
  const std::string tuning = tuning_path(info);
  return tuning.empty() ? tuning : (std::filesystem::path(tuning).parent_path() / "instructions.json").string();
}

std::string key_of_device(const DeviceInfo& info) { return info.platform + ", " + info.name + ", " + info.driver; }

// Device, instruction, and what came of it.
using Verdicts = std::map<std::string, std::map<std::string, std::string>>;

Verdicts read_verdicts(const std::string& path) {
  Verdicts verdicts;
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return verdicts;
  const std::vector<std::byte> bytes = io::read_file(path);
  const Json json = parse_json<Json>("instructions", path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto expect = [&](bool holds, const std::string& what) {
    if (!holds)
      throw IoError("instructions: " + path + ": expected " + what + "; remove the file, and they are tried again",
                    path);
  };
  expect(json.is_object() && json.value("format", Json()) == kInstructionsFormat && json.contains("devices") &&
             json["devices"].is_object(),
         "format " + std::to_string(kInstructionsFormat) + " and an object devices");
  for (const auto& [device, rows] : json["devices"].items()) {
    expect(rows.is_object(), "an object of instructions for " + device);
    for (const auto& [name, verdict] : rows.items()) {
      expect(verdict.is_string(), "a text for " + name);
      verdicts[device][name] = verdict.get<std::string>();
    }
  }
  return verdicts;
}

// Reads the store once more before, since another process may have tried another instruction meanwhile. A folder that
// cannot be written is no reason to stop; the next process tries again.
void keep_verdict(const std::string& path, const std::string& device, const std::string& name,
                  const std::string& verdict) {
  if (path.empty()) return;
  Verdicts all = read_verdicts(path);
  all[device][name] = verdict;
  try {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    const Json json{{"about", kInstructionsAbout}, {"format", kInstructionsFormat}, {"devices", all}};
    io::write_file(path, json.dump(2) + "\n");
  } catch (const std::exception& error) {
    log_message("warning", std::string("instructions: what was tried is not kept: ") + error.what());
  }
}

// A trial that another process has begun and that may still go on. A number that is our own is that of an earlier one.
bool is_being_tried(const std::string& verdict) {
  const int process = std::atoi(verdict.c_str() + std::strlen(kTrying));
  return process > 0 && process != getpid() && kill(process, 0) == 0;
}

// Empty if kernels of the device may use it.
std::string trouble_of(const Row& row, const DeviceInfo& info, cl_device_id device) {
  static Mutex& mutex = *new Mutex;
  static auto& known = *new std::map<std::string, std::string>;  // device and instruction
  if (info.type != "cpu" || info.platform.find("Portable Computing Language") == std::string::npos)
    return "tried with PoCL's CPU devices only";
  if (!cpu_has(row.instruction)) return "the CPU does not have it";
  const MutexLock lock(mutex);
  const std::string key = key_of_device(info), path = instructions_path(info);
  if (const auto found = known.find(key + row.name); found != known.end()) return found->second;
  std::string& trouble = known[key + row.name];
  const Verdicts kept = read_verdicts(path);
  if (const auto rows = kept.find(key); rows != kept.end()) {
    if (const auto verdict = rows->second.find(row.name); verdict != rows->second.end()) {
      if (!verdict->second.starts_with(kTrying)) return trouble = verdict->second == kWorks ? "" : verdict->second;
      if (!is_being_tried(verdict->second)) {
        trouble = "an earlier process ended while it tried it; remove " + path + " to try again";
        return trouble;
      }
    }
  }
  keep_verdict(path, key, row.name, kTrying + std::to_string(getpid()));
  try {
    trouble = try_instruction(row, device);
  } catch (const cl::Error& error) {
    trouble = std::string("the trial failed: ") + error.what() + ": " + status_name(error.err());
  }
  keep_verdict(path, key, row.name, trouble.empty() ? kWorks : trouble);
  return trouble;
}

#if defined(__x86_64__)
struct CpuWords {
  unsigned a = 0, b = 0, c = 0, d = 0;
};
CpuWords cpuid(unsigned leaf, unsigned part) {
  CpuWords words;
  if (__get_cpuid_count(leaf, part, &words.a, &words.b, &words.c, &words.d) == 0) return {};
  return words;
}

// The registers that the system saves for a process.
std::uint64_t saved_registers() {
  constexpr unsigned kHasXgetbv = 1U << 27;
  if ((cpuid(1, 0).c & kHasXgetbv) == 0) return 0;
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}
#endif

}  // namespace

bool cpu_has(CpuInstruction instruction) {
#if defined(__x86_64__)
  constexpr std::uint64_t kYmm = 0x6, kZmm = 0xe6;  // SSE and AVX; with masks and both parts of zmm
  constexpr unsigned kAvx512F = 1U << 16, kVnni512 = 1U << 11, kVnni = 1U << 4, kBf16 = 1U << 5;
  const std::uint64_t saved = saved_registers();
  const CpuWords features = cpuid(7, 0), more = features.a >= 1 ? cpuid(7, 1) : CpuWords{};
  const bool has_zmm = (saved & kZmm) == kZmm && (features.b & kAvx512F) != 0;
  switch (instruction) {
    case CpuInstruction::avx512_bf16: return has_zmm && (more.a & kBf16) != 0;
    case CpuInstruction::avx512_vnni: return has_zmm && (features.c & kVnni512) != 0;
    case CpuInstruction::avx_vnni: return (saved & kYmm) == kYmm && (more.a & kVnni) != 0;
  }
#else
  (void)instruction;
#endif
  return false;
}

bool can_use(CpuInstruction instruction, const DeviceInfo& info, cl_device_id device) {
  return trouble_of(row_of(instruction), info, device).empty();
}

std::vector<MatrixInstruction> find_matrix_instructions(const DeviceInfo& info, cl_device_id device) {
  std::vector<MatrixInstruction> found;
  if (info.type != "cpu") return found;
  for (const Row& row : kInstructionRows) {
    const std::string trouble = trouble_of(row, info, device);
    found.push_back({row.name, trouble.empty(), trouble});
  }
  return found;
}

}  // namespace detail

std::vector<MatrixInstruction> find_matrix_instructions(const DeviceInfo& device) {
  const detail::FoundDevice found = detail::find_device(std::to_string(device.index));
  return detail::on_device(device.name, [&] { return detail::find_matrix_instructions(found.info, found.handle); });
}

}  // namespace samebytes
