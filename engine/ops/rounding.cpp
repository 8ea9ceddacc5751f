// Stochastic rounding, two pointwise ops: sb_stochastic_bf16 and sb_stochastic_at_bf16 of cl/common/pointwise.clh.
#include "samebytes/ops/rounding.h"

#include "ops/pointwise.h"
#include "samebytes/ops.h"
#include "samebytes/random.h"
#include "samebytes/weights.h"

namespace samebytes {
namespace detail {
namespace {

constexpr std::uint32_t kKeyMask = 0xffffff;  // a float scalar holds 24 bits

const PointwiseRow kStochastic{
    "round_stochastic",    2, 2, "sb_stochastic_bf16($0, $1, #0, #1)", nullptr, PointwiseRow::Result::asked, nullptr,
    PointwiseRow::kAllFlat};

const PointwiseRow kStochasticAt{"round_stochastic_into",
                                 2,
                                 2,
                                 "sb_stochastic_at_bf16($0, PLACE_OF_1, #0, #1)",
                                 nullptr,
                                 PointwiseRow::Result::asked,
                                 nullptr,
                                 PointwiseRow::kAllFlat};

// Two numbers below 2^24, as a kernel takes scalars.
std::vector<Scalar> words_of(RandomKey key) {
  const PhiloxCounter words =
      philox4x32(random_counter(RandomDomain::rounding, 0, static_cast<std::uint32_t>(key.counter),
                                static_cast<std::uint32_t>(key.counter >> 32)),
                 {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)});
  return {static_cast<double>(words[0] & kKeyMask), static_cast<double>(words[1] & kKeyMask)};
}

}  // namespace
}  // namespace detail

Array round_stochastic(const Input& a, const Input& salt, RandomKey key) {
  detail::require(a.defined() && a.dtype() == f32, "round_stochastic", "needs an f32 array", a, "src");
  detail::require(salt.defined() && salt.dtype() == f32 && salt.shape() == a.shape(), "round_stochastic",
                  "needs salt that is f32 and of the array's shape", salt, "salt");
  static const detail::OpPtr op = detail::make_op<detail::Pointwise>(detail::kStochastic);
  const Array inputs[] = {a, salt};
  return detail::make_array(op, a.shape(), bf16, inputs, detail::words_of(key));
}

Array round_stochastic_into(const Array& cell, const Array& a, RandomKey key) {
  detail::require(a.defined() && a.dtype() == f32 && a.shape().rank() == 1, "round_stochastic_into",
                  "needs an f32 array of one axis", a, "src");
  detail::require(is_cell(cell) && cell.dtype() == bf16 && cell.shape() == a.shape(), "round_stochastic_into",
                  "needs a cell that is bf16 and of the array's shape", cell, "cell");
  static const detail::OpPtr op = detail::make_op<detail::Pointwise>(detail::kStochasticAt);
  const Array inputs[] = {a, cell};
  return detail::make_array(op, a.shape(), bf16, inputs, detail::words_of(key));
}

}  // namespace samebytes
