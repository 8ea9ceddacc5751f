#include "runtime/matrix_trials.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/devices.h"
#include "runtime/watchdog.h"

namespace samebytes::detail {
namespace {

// Two operands and a sum, in words of 32 bits.
using Words = std::vector<std::uint32_t>;

// A vector of 16 words; an instruction of 8 lanes does its work twice.
constexpr std::size_t kWords = 16;
constexpr const char* kVectorTrial = R"CL(
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void trial(__global const uint* a, __global const uint* b, __global uint* c) {
  for (int i = 0; i < 16; i += LANES) {
    VECTOR sum = *(__global LOOSE*)(c + i);
    const VECTOR x = *(__global const LOOSE*)(a + i), y = *(__global const LOOSE*)(b + i);
    __asm__(CODE : "+v"(sum) : "v"(x), "v"(y));
    *(__global LOOSE*)(c + i) = sum;
  }
}

// Eight sums each, so that no instruction waits for the one before.
#define PACE(name, STEP)                                                                     \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void name(__global uint* c) {      \
    const VECTOR x = *(__global LOOSE*)c, y = x;                                             \
    VECTOR sums[8];                                                                          \
    for (int i = 0; i < 8; ++i) sums[i] = x;                                                 \
    for (int round = 0; round < 20000; ++round) {                                            \
      _Pragma("unroll") for (int i = 0; i < 8; ++i) { STEP; }                                \
    }                                                                                        \
    for (int i = 1; i < 8; ++i) sums[0] += sums[i];                                          \
    *(__global LOOSE*)c = sums[0];                                                           \
  }
PACE(narrow, __asm__(CODE : "+v"(sums[i]) : "v"(x), "v"(y)))
#ifdef REPLACES
PACE(wide, sums[i] = fma(x, y, sums[i]))
#endif
)CL";

// Tiles of 16 rows of 16 words: c [16][16] += a [16][16] * b [16][16], where a word of a row of a and one of a column
// of b hold what an instruction multiplies along k.
constexpr std::size_t kTileWords = 256;
constexpr const char* kTileTrial = R"CL(
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void trial(__global const uint* a, __global const uint* b, __global uint* c) {
  uchar layout[64] __attribute__((aligned(64)));
  for (int i = 0; i < 64; ++i) layout[i] = 0;
  layout[0] = 1;
  for (int i = 0; i < 8; ++i) {
    layout[16 + 2 * i] = 64;
    layout[48 + i] = 16;
  }
  const size_t row = 64;
  __asm__ volatile("ldtilecfg (%0)" : : "r"((size_t)layout) : "memory");
  __asm__ volatile("tileloadd (%0,%3,1), %%tmm0\n\ttileloadd (%1,%3,1), %%tmm1\n\ttileloadd (%2,%3,1), %%tmm2\n\t" CODE
                   "\n\ttilestored %%tmm0, (%0,%3,1)\n\ttilerelease"
                   : : "r"((size_t)c), "r"((size_t)a), "r"((size_t)b), "r"(row) : "memory");
}
)CL";

// A warp: c [16][8] += a [16][16] * b [8][16]', of bf16 in pairs, brought into local memory by cp.async and read by
// ldmatrix, as the kernels of matrix products do. Each of the arrays has kTileWords words.
constexpr const char* kPtxTrial = R"CL(
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void trial(__global const uint* a, __global const uint* b, __global uint* c) {
  __local uint tiles[256] __attribute__((aligned(128)));
  const int lane = get_local_id(0), low = lane & 7, odd = lane >> 3 & 1, high = lane >> 4;
  __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                   : : "r"((uint)(ulong)(tiles + 4 * lane)), "l"(a + 4 * lane), "r"(16) : "memory");
  __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                   : : "r"((uint)(ulong)(tiles + 128 + 4 * lane)), "l"(b + 4 * (lane & 15)), "r"(lane < 16 ? 16 : 0)
                   : "memory");
  __asm__ volatile("cp.async.commit_group;" : : : "memory");
  __asm__ volatile("cp.async.wait_group 0;" : : : "memory");
  barrier(CLK_LOCAL_MEM_FENCE);
  uint x[4], y[4];
  __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                   : "r"((uint)(ulong)(tiles + (low + 8 * odd) * 8 + 4 * high)) : "memory");
  __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3])
                   : "r"((uint)(ulong)(tiles + 128 + (low + 8 * high) * 8 + 4 * odd)) : "memory");
  __global float* at = (__global float*)c + lane / 4 * 8 + lane % 4 * 2;
  float sums[4] = {at[0], at[1], at[64], at[65]};
  __asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                   "{%0,%1,%2,%3};"
                   : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                   : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  at[0] = sums[0], at[1] = sums[1], at[64] = sums[2], at[65] = sums[3];
}
)CL";

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

TrialData empty_data(std::size_t words) { return {Words(words), Words(words), Words(words), Words(words)}; }

TrialData pairs_of_bf16() {
  TrialData t = empty_data(kWords);
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
  TrialData t = empty_data(kWords);
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

// Tiles of words that hold `parts` values each; word_of_value(x, j) is value j of a word.
template <class WordOfValue>
TrialData tiles_of(std::size_t parts, bool is_float, const WordOfValue& word_of_value) {
  constexpr std::size_t kSide = 16;
  TrialData t = empty_data(kTileWords);
  const auto word_of_sum = [&](int sum) {
    return is_float ? word_of(static_cast<float>(sum)) : static_cast<std::uint32_t>(sum);
  };
  for (std::size_t i = 0; i < kSide; ++i) {
    for (std::size_t j = 0; j < kSide; ++j) {
      int sum = small_value(i, j, 3);
      t.c[i * kSide + j] = word_of_sum(sum);
      for (std::size_t p = 0; p < kSide; ++p) {
        for (std::size_t part = 0; part < parts; ++part)
          sum += small_value(i, p * parts + part, 1) * small_value(j, p * parts + part, 2);
      }
      t.want[i * kSide + j] = word_of_sum(sum);
      for (std::size_t part = 0; part < parts; ++part) {
        t.a[i * kSide + j] |= word_of_value(small_value(i, j * parts + part, 1), part);
        t.b[i * kSide + j] |= word_of_value(small_value(j, i * parts + part, 2), part);
      }
    }
  }
  return t;
}
TrialData tiles_of_bf16() {
  return tiles_of(2, true, [](int x, std::size_t j) { return word_of(static_cast<float>(x)) >> 16 << 16 * j; });
}
TrialData tiles_of_bytes() {
  return tiles_of(4, false, [](int x, std::size_t j) { return (static_cast<std::uint32_t>(x) & 0xffU) << 8 * j; });
}

TrialData warp_of_bf16() {
  constexpr std::size_t kRows = 16, kColumns = 8, kDepth = 16;
  TrialData t = empty_data(kTileWords);
  const auto put = [](Words& words, std::size_t at, int x) {
    words[at / 2] |= word_of(static_cast<float>(x)) >> 16 << 16 * (at % 2);
  };
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t p = 0; p < kDepth; ++p) {
      put(t.a, i * kDepth + p, small_value(i, p, 1));
      if (i < kColumns) put(t.b, i * kDepth + p, small_value(i, p, 2));
    }
    for (std::size_t j = 0; j < kColumns; ++j) {
      int sum = small_value(i, j, 3);
      t.c[i * kColumns + j] = word_of(static_cast<float>(sum));
      for (std::size_t p = 0; p < kDepth; ++p) sum += small_value(i, p, 1) * small_value(j, p, 2);
      t.want[i * kColumns + j] = word_of(static_cast<float>(sum));
    }
  }
  return t;
}

struct Trial {
  Instruction instruction;
  const char* kernel;
  const char* code;  // AT&T: the last operand is overwritten
  int lanes;         // of a vector
  const char* word;  // the type of a lane
  int replaces;      // multiply-adds of as many lanes that one stands for, where it must be faster than they; else 0
  TrialData (*data)();
  std::size_t items = 1;  // of the one group
};
constexpr Trial kTrials[] = {
    {Instruction::avx512_bf16, kVectorTrial, "vdpbf16ps %2, %1, %0", 16, "float", 2, pairs_of_bf16},
    {Instruction::avx512_vnni, kVectorTrial, "vpdpbusd %2, %1, %0", 16, "int", 0, fours_of_bytes},
    {Instruction::avx_vnni, kVectorTrial, "%{vex%} vpdpbusd %2, %1, %0", 8, "int", 0, fours_of_bytes},
    {Instruction::amx_bf16, kTileTrial, "tdpbf16ps %%tmm2, %%tmm1, %%tmm0", 16, "float", 0, tiles_of_bf16},
    {Instruction::amx_int8, kTileTrial, "tdpbssd %%tmm2, %%tmm1, %%tmm0", 16, "int", 0, tiles_of_bytes},
    {Instruction::ptx_mma, kPtxTrial, "", 2, "uint", 0, warp_of_bf16, 32},
};

class TrialQueue {
 public:
  TrialQueue(const cl::Context& context, const cl::Device& device)
      : name_(device.getInfo<CL_DEVICE_NAME>()), queue_(make_queue(context, device, 0, name_)) {}

  void run(const cl::Kernel& kernel, std::size_t items = 1) const {
    queue_.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(items), cl::NDRange(items));
    watchdog_.finish(queue_, name_);
  }
  // By a map: a device that is given up writes to no memory of ours later.
  void read(const cl::Buffer& buffer, std::size_t bytes, void* to) const {
    void* const mapped = queue_.enqueueMapBuffer(buffer, CL_FALSE, CL_MAP_READ, 0, bytes);
    watchdog_.finish(queue_, name_);
    std::memcpy(to, mapped, bytes);
    queue_.enqueueUnmapMemObject(buffer, mapped);
    watchdog_.finish(queue_, name_);
  }

 private:
  mutable Watchdog watchdog_{EngineOptions{}.stall_seconds};
  const std::string name_;
  const cl::CommandQueue queue_;
};

// The least seconds of a few runs of a kernel with one argument.
double pace_of(const cl::Program& program, const TrialQueue& queue, const char* name, const cl::Buffer& buffer) {
  constexpr int kRuns = 5;
  cl::Kernel kernel(program, name);
  kernel.setArg(0, buffer);
  double least = std::numeric_limits<double>::max();
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    queue.run(kernel);
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return least;
}

}  // namespace

std::string try_instruction(Instruction instruction, cl_device_id handle) {
  const Trial& trial = kTrials[static_cast<std::size_t>(instruction)];
  const cl::Device device = borrow(handle);
  const cl::Context context(device);
  const TrialQueue queue(context, device);
  const std::string vector = trial.word + std::to_string(trial.lanes);
  const std::string head = std::string(trial.replaces > 0 ? "#define REPLACES\n" : "") + "#define LANES " +
                           std::to_string(trial.lanes) + "\n#define CODE \"" + trial.code + "\"\ntypedef " + vector +
                           " VECTOR;\ntypedef " + vector + " LOOSE __attribute__((aligned(4)));\n";
  const cl::Program program(context, head + trial.kernel);
  if (clBuildProgram(program(), 1, &device(), "-cl-std=CL1.2", nullptr, nullptr) != CL_SUCCESS)
    return "the driver's compiler does not take it";
  cl::Kernel kernel(program, "trial");
  TrialData data = trial.data();
  cl::Buffer buffers[3];
  Words* const words[3] = {&data.a, &data.b, &data.c};
  const std::size_t bytes = data.c.size() * sizeof(std::uint32_t);
  for (cl_uint i = 0; i < 3; ++i) {
    buffers[i] = cl::Buffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, words[i]->data());
    kernel.setArg(i, buffers[i]);
  }
  queue.run(kernel, trial.items);
  Words came(data.c.size());
  queue.read(buffers[2], bytes, came.data());
  if (came != data.want) return "a kernel with it gave wrong numbers";
  constexpr double kWorth = 1.1;
  if (trial.replaces > 0 && pace_of(program, queue, "wide", buffers[2]) * trial.replaces <
                                kWorth * pace_of(program, queue, "narrow", buffers[2]))
    return "it is slower than the multiply-adds that it replaces";
  return "";
}

}  // namespace samebytes::detail
