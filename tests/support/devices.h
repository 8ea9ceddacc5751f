// Engines for tests: every test of an op runs on each kernel personality and in each memory mode asked for.
//
//   class SoftmaxTest : public OnDevice {};
//   SAMEBYTES_ON_EVERY_DEVICE(SoftmaxTest);
//   TEST_P(SoftmaxTest, rows_sum_to_one) { ... }   // the engine of the case is the current one
//
// An engine is made at the first test of its case and shared by all tests of the program, so kernels are built once.
// Environment: SAMEBYTES_TEST_DEVICE (a device's name), SAMEBYTES_PERSONALITY and SAMEBYTES_MEMORY (only this one),
// SAMEBYTES_TEST_PERSONALITIES (all, or own: the device's), SAMEBYTES_TEST_MODES (a comma list such as
// fine,coarse,hostptr,copy; default: the device's own choice).
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "samebytes/device.h"
#include "samebytes/dtype.h"
#include "samebytes/engine.h"

namespace samebytes::testing {

struct DeviceCase {
  Personality personality = Personality::cpu;
  std::optional<MemoryMode> memory;  // none: what the device prefers
};

std::string name_of_case(const DeviceCase& device_case);  // "cpu", "gpu_coarse"
inline void PrintTo(const DeviceCase& device_case, std::ostream* out) { *out << name_of_case(device_case); }

// The cases that the environment asks for. Throws ArgumentError for an unknown word in one of its variables.
std::vector<DeviceCase> device_cases();

// The shared engine of a case; made at first use, destroyed after the last test.
Engine& engine_of(const DeviceCase& device_case);
// An engine of the case for this caller alone, with other options.
std::unique_ptr<Engine> make_engine(const DeviceCase& device_case, EngineOptions options = {});

// Fails the running test for every array of the engine whose guard bytes were overwritten (SAMEBYTES_ALLOCATOR=exact
// only).
void check_guards(Engine& engine);

// Fixture: the engine of the case is the thread's current one while a test runs.
class OnDevice : public ::testing::TestWithParam<DeviceCase> {
 protected:
  OnDevice() : engine_(engine_of(GetParam())), scope_(engine_) {}
  // Under SAMEBYTES_ALLOCATOR=exact: no kernel of the test wrote beside its arrays.
  void TearDown() override { check_guards(engine_); }
  Engine& engine() { return engine_; }
  bool has_f64() const { return engine_.device().has_f64; }
  // True where every instruction is interpreted: a test then leaves its large shapes out.
  bool is_simulated() const { return engine_.device().platform.find("Oclgrind") != std::string::npos; }
  // f32, and f64 where the device has it.
  std::vector<Dtype> real_dtypes() const { return has_f64() ? std::vector<Dtype>{f32, f64} : std::vector<Dtype>{f32}; }

 private:
  Engine& engine_;
  EngineScope scope_;
};

#define SAMEBYTES_ON_EVERY_DEVICE(Fixture)                                                         \
  INSTANTIATE_TEST_SUITE_P(On, Fixture, ::testing::ValuesIn(::samebytes::testing::device_cases()), \
                           [](const auto& instance) { return ::samebytes::testing::name_of_case(instance.param); })

// First line of a test that needs double.
#define SAMEBYTES_NEEDS_F64() \
  if (!has_f64()) GTEST_SKIP() << "needs_f64: " << engine().device().name << " has no double"

}  // namespace samebytes::testing
