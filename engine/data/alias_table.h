// Alias table: numbers 0 .. n - 1 with given probabilities, each draw in O(1) (A. Walker 1977, M. Vose 1991).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "samebytes/random.h"

namespace samebytes::detail {

class AliasTable {
 public:
  // Requires: fewer than 2^32 weights, each 0 or more, not all 0.
  explicit AliasTable(std::span<const double> weights);
  std::int64_t draw(Random random) const {
    const std::uint32_t cell = random.below(static_cast<std::uint32_t>(keep_.size()));
    const bool stays = static_cast<double>(random.bits()) * 0x1p-32 < keep_[cell];
    return stays ? static_cast<std::int64_t>(cell) : alias_[cell];
  }

 private:
  std::vector<double> keep_;  // probability that a cell gives its own index
  std::vector<std::int64_t> alias_;
};

}  // namespace samebytes::detail
