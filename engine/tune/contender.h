// A contender: an engine with choices of its own, the results that it gives, and the time that it takes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/tunables.h"
#include "samebytes/engine.h"
#include "tune/problems.h"

namespace samebytes::detail {

class Contender {
 public:
  // Throws as Engine does.
  Contender(const std::string& device, Values values, GemmProvider provider);

  const Values& values() const { return values_; }
  const DeviceInfo& device() const { return engine_.device(); }
  // Builds what the problem needs, runs it once. Throws BuildError, DeviceError or OutOfMemory where it cannot.
  std::vector<float> result(const Problem& problem);
  // Of `count` launches queued one after the other, each on its own.
  double seconds(const Problem& problem, int count);

 private:
  const std::vector<Array>& inputs(const Problem& problem);

  Values values_;
  GemmProvider provider_;
  Engine engine_;
  std::map<const Problem*, std::vector<Array>> inputs_;
};

// How results of sums of this length may differ between two orders of summation, for operands between -1 and 1. Empty
// where they agree; else the place and both values.
std::string difference(const Problem& problem, const std::vector<float>& want, const std::vector<float>& came);

}  // namespace samebytes::detail
