// The spare device of an engine with fallback: a CPU device that does what the engine's own ones cannot. It takes no
// part in anything else.
#pragma once

#include <optional>
#include <vector>

#include "runtime/devices.h"

namespace samebytes::detail {

struct SpareDevice {
  FoundDevice found;
  int space = -1;               // of the engine's own contexts; -1: it needs one for itself
  bool is_part_of_own = false;  // an own one once more, with the kernels of the other personality
};

// `own` with the modes that their contexts have; `spaces`: their contexts, in the same order. Another CPU device that
// runs the cpu kernels; else an own CPU device with the kernels of the other personality, which share nothing with
// those that it refuses but its memory; else any other CPU device. Nothing where there is none.
std::optional<SpareDevice> find_spare(const std::vector<FoundDevice>& own, const std::vector<int>& spaces,
                                      bool are_separate);

}  // namespace samebytes::detail
