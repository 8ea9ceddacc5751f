// Tuning: the choices of one engine, and the store that they come from: a JSON file per device, driver and personality
// that people can read and edit. docs/decisions/tuner.md explains the design.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tunables.h"
#include "samebytes/device.h"
#include "samebytes/dtype.h"

namespace samebytes::detail {

std::string hex_of(std::uint64_t bits);  // 16 digits

// Immutable. Without values every choice is the built-in one.
class Tuning {
 public:
  explicit Tuning(Personality personality, Values values = {})
      : personality_(personality), values_(std::move(values)) {}
  Personality personality() const { return personality_; }
  const Values& values() const { return values_; }

  // The chosen #defines of a kernel file for the program of `real`, by name.
  std::map<std::string, std::string> tiles(Dtype real) const;
  std::string defines(Dtype real) const;  // " -DGEMM_MR=12", or empty
  // The chosen or built-in value. Throws ArgumentError for a choice that has no row in the table.
  std::int64_t choice(std::string_view family, std::string_view shape_class, std::string_view name) const;
  std::int64_t clblast(std::string_view name) const;
  // "built-in", or 16 digits that depend on every value.
  std::string hash() const;

 private:
  std::int64_t at(const std::string& key) const;
  Personality personality_;
  Values values_;
};
using TuningPtr = std::shared_ptr<const Tuning>;

// One measured line of a store; for human readers only.
struct TunedRow {
  std::string group, kernel, shape;
  double built_in_ms = 0, best_ms = 0;
};

// The contents of a store file.
struct TuningStore {
  Values values = {};
  std::vector<TunedRow> measured = {};
  std::string date = {};
};

// The path of a device's store: in SAMEBYTES_TUNING, else XDG_CACHE_HOME/samebytes, else ~/.cache/samebytes, a file
// named after device, driver and personality. Empty if SAMEBYTES_TUNING is "off" or there is no home.
std::string tuning_path(const DeviceInfo& info);

// Throws IoError "tuning: FILE: KEY: expected ..., found ..." for anything but a complete, legal store. If it was made
// for another device, driver or table, `foreign` says how and the store is empty.
TuningStore parse_tuning(std::string_view text, const std::string& path, const DeviceInfo& info, std::string* foreign);
// The text of a store; parse_tuning reads it back.
std::string tuning_text(const TuningStore& store, const DeviceInfo& info);

// The tuning of a new engine. asked: nullopt for the device's store if there is one, "" for the built-in choices, else
// a file, which must exist and fit. Sets `file` to the file that was read, or to empty.
TuningPtr load_tuning(const std::optional<std::string>& asked, const DeviceInfo& info, std::string* file);

}  // namespace samebytes::detail
