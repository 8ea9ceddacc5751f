// CLBlast as a provider of matrix products: it takes cl_mem only, so it gets the alias of each storage and our offsets.
// Its own defaults for CPU devices stage tiles in local memory and take several tens of times as long, so ours replace
// them before the first call on a device.
#include <clblast.h>

#include <mutex>
#include <set>
#include <string>

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

// No local memory, 8 x 8 groups, wide tiles per work-item: the best of a search on PoCL. The direct kernel is never
// taken there.
void use_cpu_parameters(cl_device_id device, const std::string& name) {
  static std::set<cl_device_id> done;
  if (!done.insert(device).second) return;
  for (const auto precision : {clblast::Precision::kSingle, clblast::Precision::kDouble}) {
    check(clblast::OverrideParameters(device, "Xgemm", precision,
                                      {{"GEMMK", 0},
                                       {"KREG", 1},
                                       {"KWG", 32},
                                       {"KWI", 2},
                                       {"MDIMA", 8},
                                       {"MDIMC", 8},
                                       {"MWG", 128},
                                       {"NDIMB", 8},
                                       {"NDIMC", 8},
                                       {"NWG", 64},
                                       {"SA", 0},
                                       {"SB", 0},
                                       {"STRM", 0},
                                       {"STRN", 0},
                                       {"VWM", 8},
                                       {"VWN", 8}}),
          "clblast::OverrideParameters", name);
    check(clblast::OverrideParameters(device, "GemmRoutine", precision, {{"XGEMM_MIN_INDIRECT_SIZE", 1}}),
          "clblast::OverrideParameters", name);
  }
}

cl_mem buffer_of(Storage& storage) {
  const cl_mem buffer = storage.binds_pointer() ? storage.alias() : storage.buffer();
  if (!buffer)
    throw ArgumentError(
        "matmul: CLBlast needs a buffer over the same bytes and this device has none that is sound; choose "
        "SAMEBYTES_GEMM=packed");
  return buffer;
}

template <class T>
void record(Launch& run, Operand a, Operand b, Operand c, const GemmProblem& p) {
  const bool cpu_device = run.device().info().type == "cpu";
  const std::string name = run.device().info().name;
  const cl_device_id device = run.device().id();
  run.queue_call("gemm_clblast", {a, b}, {c}, [=](cl_command_queue queue, CallAccess& access) {
    const std::lock_guard lock(clblast_mutex);
    if (cpu_device) use_cpu_parameters(device, name);
    const cl_mem from_a = buffer_of(access.storage(a)), from_b = buffer_of(access.storage(b)),
                 to = buffer_of(access.storage(c));
    const auto rows = clblast::Transpose::kNo, columns = clblast::Transpose::kYes;
    for (std::int64_t o = 0; o < p.outer; ++o) {
      for (std::int64_t i = 0; i < p.inner; ++i) {
        check(clblast::Gemm<T>(clblast::Layout::kRowMajor, p.a_col == 1 ? rows : columns, p.b_col == 1 ? rows : columns,
                               static_cast<std::size_t>(p.m), static_cast<std::size_t>(p.n),
                               static_cast<std::size_t>(p.k), T{1}, from_a,
                               static_cast<std::size_t>(access.offset(a) + o * p.a_outer + i * p.a_inner),
                               static_cast<std::size_t>(p.a_col == 1 ? p.a_row : p.a_col), from_b,
                               static_cast<std::size_t>(access.offset(b) + o * p.b_outer + i * p.b_inner),
                               static_cast<std::size_t>(p.b_col == 1 ? p.b_row : p.b_col), T{0}, to,
                               static_cast<std::size_t>(access.offset(c) + (o * p.inner + i) * p.m * p.n),
                               static_cast<std::size_t>(p.n), &queue),
              "clblast::Gemm", name);
      }
    }
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
