#include "samebytes/resident_peak.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace samebytes {
namespace {

constexpr const char* kSetBackPeak = "5";  // proc(5), clear_refs: VmHWM becomes the current size

std::optional<std::size_t> high_water_mark() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::size_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  return {};
}

}  // namespace

ResidentPeak::ResidentPeak() {
  std::ofstream mark("/proc/self/clear_refs");
  if (mark << kSetBackPeak && mark.flush()) before_ = high_water_mark();
}

std::optional<std::size_t> ResidentPeak::grown() const {
  const auto now = largest();
  if (!now) return {};
  return *now - std::min(*now, *before_);
}

std::optional<std::size_t> ResidentPeak::largest() const { return before_ ? high_water_mark() : std::nullopt; }

}  // namespace samebytes
