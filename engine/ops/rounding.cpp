// Stochastic rounding, a pointwise op: sb_stochastic_bf16 of cl/common/pointwise.clh.
#include "samebytes/ops/rounding.h"

#include "ops/pointwise.h"
#include "samebytes/ops.h"
#include "samebytes/random.h"

namespace samebytes {
namespace detail {
namespace {

constexpr std::uint32_t kKeyMask = 0xffffff;  // a float scalar holds 24 bits

const PointwiseRow kStochastic{"round_stochastic",          2,      2, "sb_stochastic_bf16($0, $1, #0, #1)",
                               PointwiseRow::Result::asked, nullptr};

}  // namespace
}  // namespace detail

Array round_stochastic(const Array& a, const Array& salt, RandomKey key) {
  detail::require(a && a.dtype() == f32, "round_stochastic", "needs an f32 array", a, "src");
  detail::require(salt && salt.dtype() == f32 && salt.shape() == a.shape(), "round_stochastic",
                  "needs salt that is f32 and of the array's shape", salt, "salt");
  static const detail::OpPtr op = detail::make_op<detail::Pointwise>(detail::kStochastic);
  const PhiloxCounter words =
      philox4x32({static_cast<std::uint32_t>(key.counter), static_cast<std::uint32_t>(key.counter >> 32), 0, 0},
                 {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)});
  const Array inputs[] = {a, salt};
  return detail::make_array(
      op, a.shape(), bf16, inputs,
      {static_cast<double>(words[0] & detail::kKeyMask), static_cast<double>(words[1] & detail::kKeyMask)});
}

}  // namespace samebytes
