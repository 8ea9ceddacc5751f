// What several ranks' elements come to, one after the other in the order of the ranks.
#pragma once

#include <cstddef>
#include <span>

#include "samebytes/distributed.h"
#include "samebytes/dtype.h"

namespace samebytes::distributed::detail {

// How the elements of the ranks become one. Sums are weighted, in f32 (f64 for f64); a rank of weight 0 is left out,
// also where it has NaN.
struct Combining {
  enum class Kind : std::uint8_t { weighted, max, min };
  Kind kind = Kind::weighted;
  std::span<const double> weights;  // of each rank, for Kind::weighted; i32 and i64 take them for 1
};

// dst may be one of the sources. Throws ArgumentError for u8 and bool.
void combine(Dtype dtype, const Combining& how, std::span<const std::byte* const> sources, std::byte* dst,
             std::size_t elements);

}  // namespace samebytes::distributed::detail
