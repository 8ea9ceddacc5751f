// How much the process grows: the resident memory that a piece of work needs at its fullest moment, drivers and all.
#pragma once

#include <cstddef>
#include <optional>

namespace samebytes {

// From here on: the largest resident size since construction, less the size at construction. One at a time, since the
// kernel's high-water mark (VmHWM, set back through /proc/self/clear_refs) is one of the process.
class ResidentPeak {
 public:
  ResidentPeak();
  // Empty where /proc does not say, or the mark could not be set back.
  std::optional<std::size_t> grown() const;
  // That size with what lay in memory before, libraries and all.
  std::optional<std::size_t> largest() const;

 private:
  std::optional<std::size_t> before_;
};

}  // namespace samebytes
