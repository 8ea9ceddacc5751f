// Fitting a step into memory, from figures that somebody else gives: mostly plan_memory() of the true step
// (estimate.h), in tests a formula. How many bytes a text means, the largest batch that fits, and which techniques.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace samebytes {

// "1.5GB" (10^9), "1.5GiB" (2^30), "800 MB", "512MiB", "64k", "2G", "123456": a number, decimals allowed, then nothing
// or B, or one of k, M, G, T (powers of 1000, also with B) or Ki, Mi, Gi, Ti (powers of 1024, also with B), in either
// case. Throws ArgumentError that says so, also for 0 and for more than an address can be.
std::size_t parse_bytes(std::string_view text);
// The other way round, for people: three digits in the unit that suits the size, powers of 1000: "512 bytes", "9.7 kB",
// "43.2 MB", "1.5 GB".
std::string bytes_text(std::size_t bytes);

struct BatchSearch {
  std::int64_t least = 1;
  std::int64_t most = std::int64_t{1} << 20;  // of samples: such as the size of the training set
  std::int64_t multiple = 1;                  // of which the answer is one where that leaves at least `multiple`
  std::size_t budget = 0;                     // bytes in all
  std::size_t reserve = 0;                    // bytes of it that stay free
  std::size_t cap = ~std::size_t{0};          // bytes that are used at most, whatever the budget
};

// The largest batch in [least, most] whose peak(batch) fits into min(budget - reserve, cap), by doubling and then
// halving the interval: about 2 log2(answer) calls. Requires a peak that does not fall with the batch. Nothing where
// not even the least one fits. Throws ArgumentError for a range without numbers.
std::optional<std::int64_t> largest_batch(const BatchSearch& search,
                                          const std::function<std::size_t(std::int64_t batch)>& peak);

// Something that lowers the peak and costs time or precision, at several strengths. Level 0 is off.
struct Technique {
  std::string name;                 // "micro-batches"
  std::vector<std::string> levels;  // of levels 1, 2, ...: "micro-batches of 2"; the later, the less memory
};

struct BudgetChoice {
  std::vector<int> levels;  // one for each technique
  std::size_t planned = 0;  // bytes at the peak with them
  bool fits = false;        // else `levels` are those of the smallest peak that there is
  int tried = 0;            // plans that were made
  // "checkpointing block, micro-batches of 2", or "nothing".
  std::string to_text(std::span<const Technique> techniques) const;
};

// Which techniques bring a step under `budget` bytes: none if it fits, else the first technique, alone and at the
// lowest level that does; where it cannot, the second one is added to it, and so on in their order. When they fit, each
// one is taken back to the lowest level with which they still do, the first one first. `peak` gives the bytes at the
// peak for a level of each technique, or nothing where these do not go together; it is called once for each setting.
BudgetChoice choose_within_budget(std::size_t budget, std::span<const Technique> techniques,
                                  const std::function<std::optional<std::size_t>(std::span<const int> levels)>& peak);

}  // namespace samebytes
