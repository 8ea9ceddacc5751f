// CLBlast as a provider of matrix products. It accepts only cl_mem, so it gets the alias of each storage and our
// offsets, and our workspace for its temporaries, so that the memory ledger counts them.
// Its own defaults for CPU devices stage tiles in local memory and take several tens of times as long, so ours replace
// them before the first call on a device.
#include <clblast.h>

#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "ops/gemm.h"
#include "samebytes/error.h"

namespace samebytes::detail {
namespace {

std::mutex clblast_mutex;  // CLBlast 1.5.3 races on its program cache

void check(clblast::StatusCode status, const char* call, const std::string& device) {
  if (status == clblast::StatusCode::kSuccess) return;
  const std::string number = std::to_string(static_cast<int>(status));
  throw DeviceError(std::string(call) + ": CLBlast gave status " + number + " on " + device, call, number, device);
}

// A CPU device in the gpu personality has no row for them in its table and also uses the built-in ones.
using Parameters = std::unordered_map<std::string, std::size_t>;
Parameters parameters_of(const Tuning& tuning) {
  Parameters parameters;
  for (const Tunable& row : tunables(Personality::cpu))
    if (row.kind == Tunable::Kind::clblast)
      parameters[row.name] =
          static_cast<std::size_t>(tuning.personality() == Personality::cpu ? tuning.clblast(row.name) : row.built_in);
  return parameters;
}

// CLBlast keeps the parameters for the whole process: engines with different choices take turns, under the mutex. The
// direct kernel is never used on a CPU. f64 keeps the built-in parameters.
void use_cpu_parameters(cl_device_id device, const std::string& name, const Parameters& chosen) {
  static std::map<cl_device_id, Parameters> used;
  Parameters& now = used[device];
  if (now == chosen) return;
  const bool is_first = now.empty();
  now = {};  // if a call below fails, the next product tries again
  check(clblast::OverrideParameters(device, "Xgemm", clblast::Precision::kSingle, chosen),
        "clblast::OverrideParameters", name);
  now = chosen;
  if (!is_first) return;
  for (const auto precision : {clblast::Precision::kSingle, clblast::Precision::kDouble}) {
    if (precision == clblast::Precision::kDouble)
      check(clblast::OverrideParameters(device, "Xgemm", precision, parameters_of(Tuning(Personality::cpu))),
            "clblast::OverrideParameters", name);
    check(clblast::OverrideParameters(device, "GemmRoutine", precision, {{"XGEMM_MIN_INDIRECT_SIZE", 1}}),
          "clblast::OverrideParameters", name);
  }
}

cl_mem buffer_of(Storage& storage) {
  const cl_mem buffer = storage.binds_pointer() ? storage.alias() : storage.buffer()();
  if (!buffer)
    throw ArgumentError(
        "matmul: CLBlast needs a buffer over the same bytes and this device has none that is sound; choose "
        "SAMEBYTES_GEMM=packed");
  return buffer;
}

// One product of a batch, as CLBlast wants it.
struct Call {
  clblast::Transpose a_transpose, b_transpose;
  std::size_t m, n, k, a_offset, a_ld, b_offset, b_ld, c_offset;
};

// Bytes of temporaries that CLBlast needs with these offsets; it copies an operand there whose offset is not zero.
template <class T>
std::size_t temporaries(const Call& call, std::size_t a_offset, std::size_t b_offset, std::size_t c_offset,
                        cl_command_queue queue, const std::string& device) {
  std::size_t bytes = 0;
  check(
      clblast::GemmTempBufferSize<T>(clblast::Layout::kRowMajor, call.a_transpose, call.b_transpose, call.m, call.n,
                                     call.k, a_offset, call.a_ld, b_offset, call.b_ld, c_offset, call.n, &queue, bytes),
      "clblast::GemmTempBufferSize", device);
  return bytes;
}

struct Need {
  std::size_t bytes = 0;
  int launches = 1;  // the product, and those that bring the operands into CLBlast's layout and the result out of it
};

// CLBlast copies an operand if its offset makes the workspace larger.
template <class T>
Need need_of(const Call& call, cl_command_queue queue, const std::string& device) {
  const std::size_t a = call.a_offset, b = call.b_offset, c = call.c_offset;
  Need need{.bytes = temporaries<T>(call, a, b, c, queue, device)};
  if (need.bytes == 0) return need;
  const bool copies_a = temporaries<T>(call, 1, b, c, queue, device) == need.bytes;
  const bool copies_b = temporaries<T>(call, a, 1, c, queue, device) == need.bytes;
  const bool copies_c = temporaries<T>(call, a, b, 1, queue, device) == need.bytes;
  need.launches += int{copies_a} + int{copies_b} + int{copies_c};
  return need;
}

template <class T>
void record(Launch& run, Operand a, Operand b, Operand c, const GemmProblem& p) {
  const bool cpu_device = run.device().info().type == "cpu";
  const std::string name = run.device().info().name;
  const cl_device_id device = run.device().handle()();
  const Parameters parameters = parameters_of(run.device().tuning());
  run.queue_call("gemm_clblast", {a, b}, {c}, [=](const cl::CommandQueue& given, CallAccess& access) {
    cl_command_queue queue = given();
    const std::lock_guard lock(clblast_mutex);
    if (cpu_device) use_cpu_parameters(device, name, parameters);
    const cl_mem from_a = buffer_of(access.storage(a)), from_b = buffer_of(access.storage(b)),
                 to = buffer_of(access.storage(c));
    const auto rows = clblast::Transpose::kNo, columns = clblast::Transpose::kYes;
    const auto size = [](std::int64_t v) { return static_cast<std::size_t>(v); };
    int launches = 0;
    for (std::int64_t o = 0; o < p.outer; ++o) {
      for (std::int64_t i = 0; i < p.inner; ++i) {
        const Call call{.a_transpose = p.a_col == 1 ? rows : columns,
                        .b_transpose = p.b_col == 1 ? rows : columns,
                        .m = size(p.m),
                        .n = size(p.n),
                        .k = size(p.k),
                        .a_offset = size(access.offset(a) + o * p.a_outer + i * p.a_inner),
                        .a_ld = size(p.a_col == 1 ? p.a_row : p.a_col),
                        .b_offset = size(access.offset(b) + o * p.b_outer + i * p.b_inner),
                        .b_ld = size(p.b_col == 1 ? p.b_row : p.b_col),
                        .c_offset = size(access.offset(c) + (o * p.inner + i) * p.m * p.n)};
        const Need need = need_of<T>(call, queue, name);
        launches += need.launches;
        const cl_mem temporary = need.bytes > 0 ? buffer_of(access.workspace(need.bytes)) : nullptr;
        check(clblast::Gemm<T>(clblast::Layout::kRowMajor, call.a_transpose, call.b_transpose, call.m, call.n, call.k,
                               T{1}, from_a, call.a_offset, call.a_ld, from_b, call.b_offset, call.b_ld, T{0}, to,
                               call.c_offset, call.n, &queue, nullptr, temporary),
              "clblast::Gemm", name);
      }
    }
    return launches;
  });
}

}  // namespace

void launch_gemm_clblast(Launch& run, Operand a, Operand b, Operand c, const GemmProblem& problem, Dtype real) {
  if (real == Dtype::f64)
    record<double>(run, a, b, c, problem);
  else
    record<float>(run, a, b, c, problem);
}

}  // namespace samebytes::detail
