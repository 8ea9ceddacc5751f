// Random programs against a plain interpreter in double: fused and op by op, by the host and by kernels, on one engine,
// on several, and on several devices of one.
#include <gtest/gtest.h>

#include "graph/context.h"
#include "runtime/runtime.h"
#include "support/quirks.h"
#include "support/random_programs.h"

namespace samebytes::testing {
namespace {

using programs::engine_with;
using programs::Program;
using programs::run_programs;

// Elsewhere each launch is one of a kernel, and each fused one is compiled.
bool runs_on_host(Engine& engine) { return engine.context()->runtime->device().runs_host_functions(); }

TEST(ProgramFuzz, fused_programs_of_the_host_give_what_the_interpreter_gives) {
  const auto engine = engine_with(HostExecution::always, false);
  if (!runs_on_host(*engine)) GTEST_SKIP() << "needs_host_functions: " << engine->device().name << " runs none";
  EXPECT_GT(run_programs(*engine, 0, 5000), is_sanitized() ? 100 : 2000);
}

TEST(ProgramFuzz, programs_op_by_op_give_the_same) {
  const auto engine = engine_with(HostExecution::always, true);
  run_programs(*engine, 5000, runs_on_host(*engine) ? 5000 : 200);
}

TEST(ProgramFuzz, programs_of_kernels_give_the_same) {
  const auto fused = engine_with(HostExecution::off, false), single = engine_with(HostExecution::off, true);
  run_programs(*fused, 0, 6);
  run_programs(*single, 10000, 200);
}

TEST(ProgramFuzz, programs_on_two_devices_give_the_same) {
  SAMEBYTES_NEEDS_PARTS();
  const auto engine = engine_with(HostExecution::always, false, {1, 1});
  run_programs(*engine, 20000, runs_on_host(*engine) ? 300 : 6);
}

TEST(ProgramFuzz, programs_of_several_engines_take_turns) {
  auto first = engine_with(HostExecution::always, false);
  if (!runs_on_host(*first)) first = engine_with(HostExecution::always, true);
  const auto second = engine_with(HostExecution::queued, true);
  for (std::uint32_t seed = 0; seed < (is_sanitized() ? 10 : 100) && !HasFailure(); ++seed) {
    Program one(seed, *first), two(seed + 1000, *second), three(seed + 2000, *first);
    for (int i = 0; i < 10; ++i)
      for (Program* each : {&one, &two, &three}) each->step();
    for (Program* each : {&one, &two, &three}) each->finish();
  }
}

}  // namespace
}  // namespace samebytes::testing
