// FoldRun: of a workload that is trained in several folds, the one under way and what the ended ones came to. A
// checkpoint has it as text, so that a run that was killed in its third fold goes on there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/summary.h"

namespace samebytes::cli {

struct FoldRun {
  int fold = 0;               // from 0
  std::int64_t steps = 0;     // of the ended ones together: checkpoints are numbered through
  std::vector<double> areas;  // under the curve, of those
  // The fold under way came to this.
  void end(const Summary& summary);
  std::string to_text() const;
  static FoldRun from_text(const std::string& text);
};

}  // namespace samebytes::cli
