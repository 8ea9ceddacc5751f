#include "runtime/matrix_instructions.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <signal.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/json.h"
#include "core/mutex.h"
#include "runtime/devices.h"
#include "runtime/matrix_trials.h"
#include "runtime/tuning.h"
#include "samebytes/error.h"
#include "samebytes/io/files.h"
#include "samebytes/log.h"

namespace samebytes {
namespace detail {
namespace {

using Json = nlohmann::ordered_json;

struct Row {
  Instruction instruction;
  const char* name;
};
constexpr Row kInstructionRows[] = {
    {Instruction::avx512_bf16, "avx512_bf16"}, {Instruction::avx512_vnni, "avx512_vnni"},
    {Instruction::avx_vnni, "avx_vnni"},       {Instruction::amx_bf16, "amx_bf16"},
    {Instruction::amx_int8, "amx_int8"},       {Instruction::ptx_mma, "ptx_mma"},
};

const Row& row_of(Instruction instruction) { return kInstructionRows[static_cast<std::size_t>(instruction)]; }

constexpr const char* kInstructionsAbout =
    "Which matrix instructions of the CPU kernels may use on a device: a small kernel tried each one that the CPU has. "
    "Remove the file to try again.";
constexpr int kInstructionsFormat = 2;  // verdicts of another one are not read: other kernels gave them
constexpr const char* kWorks = "works";
constexpr const char* kTrying = "process ";  // and its number, before a kernel runs

std::string instructions_path(const DeviceInfo& info) {
  const std::string tuning = tuning_path(info);
  return tuning.empty() ? tuning : (std::filesystem::path(tuning).parent_path() / "instructions.json").string();
}

std::string key_of_device(const DeviceInfo& info) { return info.platform + ", " + info.name + ", " + info.driver; }

// Reads the store once more before, since another process may have tried another instruction meanwhile. A folder that
// cannot be written is no reason to stop; the next process tries again.
void keep_verdict(const std::string& path, const std::string& device, const std::string& name,
                  const std::string& verdict) {
  if (path.empty()) return;
  InstructionVerdicts all = read_instruction_verdicts(path);
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

// A compiler that does not take the assembly says so, but takes a while.
bool compiles_ptx(const DeviceInfo& info) {
  return info.type == "gpu" && info.platform.find("NVIDIA") != std::string::npos;
}

// Empty if kernels of the device may use it.
std::string trouble_of(const Row& row, const DeviceInfo& info, cl_device_id device) {
  static Mutex& mutex = *new Mutex;
  static auto& known = *new std::map<std::string, std::string>;  // device and instruction
  if (row.instruction == Instruction::ptx_mma) {
    if (!compiles_ptx(info)) return "tried with NVIDIA's driver only";
  } else {
    if (info.type != "cpu" || info.platform.find("Portable Computing Language") == std::string::npos)
      return "tried with PoCL's CPU devices only";
    if (!cpu_has(row.instruction)) return "the CPU does not have it";
  }
  const MutexLock lock(mutex);
  const std::string key = key_of_device(info), path = instructions_path(info);
  if (const auto found = known.find(key + row.name); found != known.end()) return found->second;
  std::string& trouble = known[key + row.name];
  const InstructionVerdicts kept = read_instruction_verdicts(path);
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
    trouble = try_instruction(row.instruction, device);
  } catch (const cl::Error& error) {
    trouble = std::string("the trial failed: ") + error.what() + ": " + status_name(error.err());
  } catch (const DeviceError& error) {  // of a wait
    trouble = std::string("the trial failed: ") + error.what();
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

// Linux keeps the registers of tiles for processes that ask for them, once.
bool has_tile_registers() {
  constexpr std::uint64_t kTiles = 0x60000;  // configuration and data
  if ((saved_registers() & kTiles) != kTiles) return false;
#if defined(__linux__)
  constexpr int kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, of asm/prctl.h
  static const bool is_granted = syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  return is_granted;
#else
  return false;
#endif
}
#endif

}  // namespace

InstructionVerdicts read_instruction_verdicts(const std::string& path) {
  InstructionVerdicts verdicts;
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return verdicts;
  const std::vector<std::byte> bytes = io::read_file(path);
  const Json json = parse_json<Json>("instructions", path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto expect = [&](bool holds, const std::string& what) {
    if (!holds)
      throw IoError("instructions: " + path + ": expected " + what + "; remove the file, and they are tried again",
                    path);
  };
  const Json format = json.is_object() ? json.value("format", Json()) : Json();
  if (format.is_number_integer() && format != kInstructionsFormat) return verdicts;
  expect(format == kInstructionsFormat && json.contains("devices") && json["devices"].is_object(),
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

Instructions instructions_named(std::string_view words) {
  if (words.empty() || words == "1") return kAllInstructions;
  if (words == "0") return kNoInstructions;
  Instructions named = kNoInstructions;
  std::string names;
  for (const Row& row : kInstructionRows) names += std::string(names.empty() ? "" : ", ") + row.name;
  for (std::size_t begin = 0; begin <= words.size();) {
    const std::size_t end = std::min(words.find(',', begin), words.size());
    const std::string_view word = words.substr(begin, end - begin);
    const Row* const row = std::find_if(std::begin(kInstructionRows), std::end(kInstructionRows),
                                        [&](const Row& each) { return each.name == word; });
    if (row == std::end(kInstructionRows))
      throw ArgumentError("SAMEBYTES_MATRIX_INSTRUCTIONS: expected 0, 1 or names of " + names +
                          " with commas between them, got '" + std::string(word) + "'");
    named |= bit_of(row->instruction);
    begin = end + 1;
  }
  return named;
}

bool cpu_has(Instruction instruction) {
#if defined(__x86_64__)
  constexpr std::uint64_t kYmm = 0x6, kZmm = 0xe6;  // SSE and AVX; with masks and both parts of zmm
  constexpr unsigned kAvx512F = 1U << 16, kVnni512 = 1U << 11, kVnni = 1U << 4, kBf16 = 1U << 5, kAmxBf16 = 1U << 22,
                     kAmxTile = 1U << 24, kAmxInt8 = 1U << 25;
  const std::uint64_t saved = saved_registers();
  const CpuWords features = cpuid(7, 0), more = features.a >= 1 ? cpuid(7, 1) : CpuWords{};
  const bool has_zmm = (saved & kZmm) == kZmm && (features.b & kAvx512F) != 0;
  const auto has_tiles = [&](unsigned kind) {
    return (features.d & (kAmxTile | kind)) == (kAmxTile | kind) && has_tile_registers();
  };
  switch (instruction) {
    case Instruction::avx512_bf16: return has_zmm && (more.a & kBf16) != 0;
    case Instruction::avx512_vnni: return has_zmm && (features.c & kVnni512) != 0;
    case Instruction::avx_vnni: return (saved & kYmm) == kYmm && (more.a & kVnni) != 0;
    case Instruction::amx_bf16: return has_tiles(kAmxBf16);
    case Instruction::amx_int8: return has_tiles(kAmxInt8);
    case Instruction::ptx_mma: return false;
  }
#else
  (void)instruction;
#endif
  return false;
}

bool can_use(Instruction instruction, const DeviceInfo& info, cl_device_id device) {
  return trouble_of(row_of(instruction), info, device).empty();
}

std::vector<MatrixInstruction> find_matrix_instructions(const DeviceInfo& info, cl_device_id device) {
  std::vector<MatrixInstruction> found;
  for (const Row& row : kInstructionRows) {
    if (row.instruction == Instruction::ptx_mma ? !compiles_ptx(info) : info.type != "cpu") continue;
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
