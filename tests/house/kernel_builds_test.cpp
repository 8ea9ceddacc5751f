// Every kernel entry builds on every device found, for each real type it has. A device that is no PoCL is asked for the
// personality it would choose itself only: llvmpipe takes minutes over register tiles.
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/context.h"
#include "runtime/kernel_texts.h"
#include "samebytes/error.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/source_tree.h"

namespace samebytes::testing {
namespace {

// Those of 16 bits have arrays of `stored`; one with arrays of `float` is there in f32 alone.
std::vector<std::string> entries_of(Personality personality, Dtype dtype) {
  std::vector<std::string> entries;
  for (const auto& file : source_files({std::string("cl/") + name_of(personality)}, {".cl"})) {
    for (const auto& [entry, arguments] : kernel_entries(file.text)) {
      if (entry.ends_with('*')) continue;  // a macro's family is built with the rest of its program
      if (detail::is_16_bit(dtype) && arguments.find("stored,") == std::string::npos) continue;
      if (dtype != f32 && arguments.find("float,") != std::string::npos) continue;
      entries.push_back(entry);
    }
  }
  return entries;
}

TEST(KernelBuilds, every_entry_on_every_device_found) {
  int devices = 0;
  for (const DeviceInfo& info : list_devices()) {
    if (!info.refused.empty()) continue;
    ++devices;
    std::vector<Personality> personalities = {info.personality};
    if (info.personality == Personality::cpu) personalities.push_back(Personality::gpu);
    for (const Personality personality : personalities) {
      EngineOptions options;
      options.device = std::to_string(info.index);
      const auto engine = make_engine({personality, std::nullopt}, options);
      auto& kernels = engine->context()->runtime->device().kernels();
      std::set<std::string> said;  // entries of a program fail alike
      for (const Dtype dtype : {f32, f64, f16, bf16}) {
        if (dtype == f64 && !info.has_f64) continue;
        const auto entries = entries_of(personality, dtype);
        EXPECT_GT(entries.size(), 20u) << name_of(dtype);
        for (const auto& entry : entries) {
          try {
            EXPECT_NE(kernels.make_kernel(dtype, entry), nullptr);
          } catch (const Error& error) {
            if (said.insert(error.what()).second)
              ADD_FAILURE() << info.name << ", " << name_of(personality) << ", " << name_of(dtype) << ", " << entry
                            << ": " << error.what();
          }
        }
      }
    }
  }
  if (devices == 0) GTEST_SKIP() << "no device found";
  EXPECT_TRUE(detail::are_own_builtins_enough())
      << "a kernel calls a built-in function that cl/common/builtins.clh does not declare: declare it there";
}

}  // namespace
}  // namespace samebytes::testing
