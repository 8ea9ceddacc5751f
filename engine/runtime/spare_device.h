// The spare device of an engine with fallback: a CPU device that does only what the engine's own devices cannot.
#pragma once

#include <optional>
#include <vector>

#include "runtime/devices.h"

namespace samebytes::detail {

struct SpareDevice {
  FoundDevice found;
  int space = -1;               // index of the engine's own context to join; -1: it needs a new one
  bool is_part_of_own = false;  // one of the own devices again, with the kernels of the other personality
};

// `own` with the modes that their contexts have; `spaces`: their contexts, in the same order. Prefers another CPU
// device that runs the cpu kernels; then an own CPU device with the kernels of the other personality, which share
// nothing but memory with the refused ones; then any other CPU device. Returns nullopt if there is none.
std::optional<SpareDevice> find_spare(const std::vector<FoundDevice>& own, const std::vector<int>& spaces,
                                      bool are_separate);

}  // namespace samebytes::detail
