#include "samebytes/pressure.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "core/available_memory.h"
#include "samebytes/engine.h"
#include "samebytes/error.h"
#include "samebytes/log.h"

namespace samebytes {
namespace {

std::string gigabytes(std::size_t bytes) {
  std::ostringstream text;
  text.precision(3);
  text << static_cast<double>(bytes) * 1e-9 << " GB";
  return text.str();
}

}  // namespace

MemoryFigures process_memory() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  if (!(statm >> all >> resident)) return {};
  MemoryFigures figures{.used = resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE))};
  if (const auto available = detail::available_memory()) figures.limit = figures.used + *available;
  return figures;
}

PressureGuard::PressureGuard(Engine& engine, PressureOptions options) : engine_(engine), options_(std::move(options)) {
  if (!(options_.trim_share > 0 && options_.trim_share <= options_.stop_share))
    throw ArgumentError("PressureGuard: expected 0 < trim_share <= stop_share, got " +
                        std::to_string(options_.trim_share) + " and " + std::to_string(options_.stop_share));
}

MemoryFigures PressureGuard::read() const {
  MemoryFigures figures = options_.figures();
  if (options_.limit > 0) figures.limit = figures.limit > 0 ? std::min(figures.limit, options_.limit) : options_.limit;
  return figures;
}

void PressureGuard::tell(std::string text, const MemoryFigures& figures) const {
  if (options_.tell) options_.tell({std::move(text), figures});
}

bool PressureGuard::relieve(const MemoryFigures& figures) {
  for (; relief_ < options_.reliefs.size(); ++relief_)
    if (const std::optional<std::string> what = options_.reliefs[relief_].give_up()) {
      tell(*what, figures);
      return true;
    }
  return false;
}

Pressure PressureGuard::look() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return Pressure::low;
  next_ = now + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                    std::chrono::duration<double>(options_.seconds));
  const auto share_of = [](const MemoryFigures& f) {
    return f.limit > 0 ? static_cast<double>(f.used) / static_cast<double>(f.limit) : 0.0;
  };
  MemoryFigures figures = read();
  if (share_of(figures) < options_.trim_share) {
    is_under_pressure_ = false;
    return Pressure::low;
  }
  if (const std::size_t bytes = engine_.clear_cache(); bytes > 0) {
    trimmed_ += bytes;
    if (!is_under_pressure_) tell("the engine's cache is given back", figures);
  }
  is_under_pressure_ = true;
  figures = read();
  const double share = share_of(figures);
  if (share < options_.trim_share) return Pressure::trimmed;
  if (relieve(figures)) {
    if (share >= options_.stop_share) next_ = now;  // there is no time to wait
    return Pressure::relieved;
  }
  const std::string text = "the process uses " + gigabytes(figures.used) + " of the " + gigabytes(figures.limit) +
                           " that it can have, and the engine's cache is empty" +
                           (options_.reliefs.empty() ? "" : ", and nothing is left to give up");
  if (share >= options_.stop_share)
    throw OutOfMemory(
        "pressure guard: " + text +
            "; stopped before the system swaps or kills the process; ways out: (1) a smaller batch; (2) a "
            "memory limit that the step is planned for; (3) fewer batches in memory at a time",
        figures.used, figures.limit);
  if (!std::exchange(has_warned_, true)) log_message("warning", "pressure guard: " + text);
  return Pressure::high;
}

}  // namespace samebytes
