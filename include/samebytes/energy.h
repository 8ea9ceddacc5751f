// EnergyMeter: the energy that the processor has used, in joules, if Linux lets the process read its counters.
//   const EnergyMeter meter;
//   ...
//   if (const std::optional<double> joules = meter.joules()) use(*joules / samples);
// The counters are those of the processor packages (powercap's intel-rapl, which also covers AMD): cores, caches and
// everything else in the package, including an integrated GPU, for all processes. Since 2020 only root may read them by
// default. Without a counter the meter does not estimate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace samebytes {

class EnergyMeter {
 public:
  // Starts counting. `root` replaces /sys/class/powercap.
  explicit EnergyMeter(const std::string& root = "/sys/class/powercap");

  bool is_readable() const { return !packages_.empty(); }
  // Energy of all packages since the meter was made; nullopt if a counter cannot be read. Counters wrap around after an
  // hour or so: the result is too small for twice that time and more.
  std::optional<double> joules() const;

 private:
  struct Package {
    std::string file;               // energy_uj
    std::uint64_t begin = 0;        // microjoules
    std::uint64_t begins_anew = 0;  // wraps around after this many
  };
  std::vector<Package> packages_;
};

}  // namespace samebytes
