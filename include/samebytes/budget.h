// Fits a step into memory: parses sizes in bytes, finds the largest batch that fits, and chooses techniques. The caller
// supplies the peak as a function, usually plan_memory() of the actual step (estimate.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "samebytes/figures.h"

namespace samebytes {

// "1.5GB" (10^9), "1.5GiB" (2^30), "800 MB", "512MiB", "64k", "2G", "123456": a number with optional decimals, then an
// optional k, M, G, T (powers of 1000) or Ki, Mi, Gi, Ti (powers of 1024), then an optional B, in upper or lower case.
// Throws ArgumentError, describing this form, for other text, for 0 and for more than the address space.
std::size_t parse_bytes(std::string_view text);
// bytes_text() of figures.h is the inverse, for people.

struct BatchSearch {
  std::int64_t least = 1;
  std::int64_t most = std::int64_t{1} << 20;  // samples, such as the size of the training set
  std::int64_t multiple = 1;                  // the answer is a multiple of this if it is at least this large
  std::size_t budget = 0;                     // total bytes
  std::size_t reserve = 0;                    // bytes of these to keep free
  std::size_t cap = ~std::size_t{0};          // upper limit on the bytes used, independent of the budget
};

// The largest batch in [least, most] whose peak(batch) fits into min(budget - reserve, cap), by doubling and then
// bisection: about 2 log2(answer) calls. Requires a peak that does not decrease with the batch. Returns nullopt if even
// the smallest does not fit. Throws ArgumentError for an empty range.
std::optional<std::int64_t> largest_batch(const BatchSearch& search,
                                          const std::function<std::size_t(std::int64_t batch)>& peak);

// A technique that lowers the peak at the cost of time or precision, at several levels. Level 0 is off.
struct Technique {
  std::string name;  // "micro-batches"
  std::vector<std::string>
      levels;  // names of levels 1, 2, ...: "micro-batches of 2"; later ones usually need less memory
};

struct BudgetChoice {
  std::vector<int> levels;  // one per technique
  std::size_t planned = 0;  // peak bytes with them
  bool fits = false;        // false: `levels` are those with the smallest peak
  int tried = 0;            // number of plans made
  // "checkpointing block, micro-batches of 2", or "nothing".
  std::string to_text(std::span<const Technique> techniques) const;
};

// Chooses techniques that bring a step under `budget` bytes: none if it fits already; otherwise the first technique
// alone, at the lowest level that fits; if no level does, adds the second one, and so on in order. Once they fit, it
// reduces each one, the first one first, to the lowest level at which they still fit. `peak` returns the peak bytes for
// a level of each technique, or nullopt if the levels are incompatible; it is called once per setting.
BudgetChoice choose_within_budget(std::size_t budget, std::span<const Technique> techniques,
                                  const std::function<std::optional<std::size_t>(std::span<const int> levels)>& peak);

}  // namespace samebytes
