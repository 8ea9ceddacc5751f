// EnergyMeter: the joules that the processor has used, where Linux lets the process read its counters.
//   const EnergyMeter meter;
//   ...
//   if (const std::optional<double> joules = meter.joules()) use(*joules / samples);
// The counters are those of the processor packages (powercap's intel-rapl, which AMD's processors have too): cores,
// caches and what else is in the package, an integrated graphics unit too, of all processes. Since 2020 only root may
// read them. There is no guess where there is no counter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace samebytes {

class EnergyMeter {
 public:
  // Begins to count. `root` stands for /sys/class/powercap.
  explicit EnergyMeter(const std::string& root = "/sys/class/powercap");

  bool is_readable() const { return !packages_.empty(); }
  // Since this meter was made, of all packages; nothing where a counter cannot be read. Counters begin anew at some
  // point, after an hour or so: of twice that time and more the result is too small.
  std::optional<double> joules() const;

 private:
  struct Package {
    std::string file;               // energy_uj
    std::uint64_t begin = 0;        // microjoules
    std::uint64_t begins_anew = 0;  // after this many
  };
  std::vector<Package> packages_;
};

}  // namespace samebytes
