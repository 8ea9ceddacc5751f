// Every kernel entry builds on every device found, for each real type it has. A device that is no PoCL is asked for the
// personality it would choose itself only: llvmpipe takes minutes over register tiles.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "graph/context.h"
#include "samebytes/error.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/source_tree.h"

namespace samebytes::testing {
namespace {

std::vector<std::string> entries_of(Personality personality) {
  std::vector<std::string> entries;
  for (const auto& file : source_files({std::string("cl/") + name_of(personality)}, {".cl"})) {
    for (const auto& [entry, arguments] : kernel_entries(file.text)) {
      if (!entry.ends_with('*')) entries.push_back(entry);  // a macro's family is built with the rest of its program
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
      const auto entries = entries_of(personality);
      EXPECT_FALSE(entries.empty());
      for (const Dtype real : info.has_f64 ? std::vector<Dtype>{f32, f64} : std::vector<Dtype>{f32}) {
        for (const auto& entry : entries) {
          try {
            EXPECT_NE(kernels.make_kernel(real, entry), nullptr);
          } catch (const Error& error) {
            ADD_FAILURE() << info.name << ", " << name_of(personality) << ", " << entry << ": " << error.what();
            break;  // one program holds them all, so the others fail alike
          }
        }
      }
      for (const Dtype stored : {f16, bf16}) {
        try {
          EXPECT_NE(kernels.make_kernel(stored, "softmax_fwd"), nullptr);
        } catch (const Error& error) {
          ADD_FAILURE() << info.name << ", " << name_of(personality) << ", " << name_of(stored) << ": " << error.what();
        }
      }
    }
  }
  if (devices == 0) GTEST_SKIP() << "no device found";
}

}  // namespace
}  // namespace samebytes::testing
