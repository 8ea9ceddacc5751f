// A plan over the devices of two drivers, one of which has no shared virtual memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/process.h"

namespace samebytes::testing {
namespace {

TEST(ContextsChild, DISABLED_a_driver_without_svm_works_beside_one_that_has_it) {
  const std::vector<DeviceInfo> devices = list_devices();
  const auto is_llvmpipe = [](const DeviceInfo& d) { return d.name.find("llvmpipe") != std::string::npos; };
  if (std::none_of(devices.begin(), devices.end(), is_llvmpipe)) GTEST_SKIP() << "no llvmpipe";
  if (is_llvmpipe(devices.front())) GTEST_SKIP() << "no other driver beside llvmpipe";
  Engine engine({.devices = {devices.front().id, "llvmpipe"}});
  EXPECT_EQ(engine.device(0).memory_mode, devices.front().memory_mode);
  const Array x = uniform({100, 37});
  const std::vector<float> values = x.to_vector<float>();
  for (int step = 0; step < 3; ++step) {
    Array y;
    {
      const DeviceScope on(1);
      y = tanh(x * 2.0) + x;
    }
    const std::vector<float> z = (y * x).to_vector<float>();
    for (std::size_t i = 0; i < z.size(); ++i)
      ASSERT_NEAR(z[i], (std::tanh(2 * values[i]) + values[i]) * values[i], 1e-5);
  }
  EXPECT_EQ(engine.transfers().crossings, 6u);
  EXPECT_EQ(engine.transfers().bytes_between_contexts, 6u * 100 * 37 * 4);
}

TEST(ContextsOfDrivers, a_driver_without_svm_works_beside_one_that_has_it) {
  const Outcome outcome = run_child("ContextsChild.*", {{"RUSTICL_ENABLE", "llvmpipe"}, {"SAMEBYTES_TUNING", "off"}});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

}  // namespace
}  // namespace samebytes::testing
