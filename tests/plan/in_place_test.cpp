// In place: results take the bytes of inputs that die in their launch, and of no others.
#include "plan/in_place.h"

#include <gtest/gtest.h>

#include <cmath>

#include "samebytes/samebytes.h"
#include "support/devices.h"

namespace samebytes::testing {
namespace {

using detail::InPlacePair;
using detail::PlanBuffer;
using Kind = PlanBuffer::Kind;

PlanBuffer buffer(int first, int last, std::size_t bytes = 64, Kind kind = Kind::arena) {
  PlanBuffer b;
  b.kind = kind;
  b.bytes = bytes;
  b.first = first;
  b.last = last;
  return b;
}

TEST(InPlace, a_result_takes_the_bytes_of_an_input_that_dies) {
  const std::vector<PlanBuffer> buffers{buffer(0, 1), buffer(1, 2), buffer(2, 3)};
  const std::vector<InPlacePair> pairs{{1, 0, 1}, {2, 1, 2}};
  EXPECT_EQ(detail::share_in_place(buffers, pairs), (std::vector<int>{0, 0, 0}));
}

TEST(InPlace, what_is_read_later_or_lies_elsewhere_or_is_too_small_keeps_its_bytes) {
  const std::vector<PlanBuffer> buffers{buffer(0, 2), buffer(0, 1, 64, Kind::leaf), buffer(0, 1, 32),
                                        buffer(1, 2), buffer(1, 1, 64, Kind::own),  buffer(0, 1)};
  const std::vector<InPlacePair> pairs{{1, 0, 3}, {1, 1, 3}, {1, 2, 3}, {1, 5, 4}};
  EXPECT_EQ(detail::share_in_place(buffers, pairs), (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST(InPlace, two_results_do_not_meet_in_one_input) {
  const std::vector<PlanBuffer> buffers{buffer(0, 1), buffer(0, 1), buffer(1, 2), buffer(1, 2)};
  const std::vector<InPlacePair> pairs{{1, 0, 2}, {1, 1, 2}, {1, 0, 3}, {1, 1, 3}};
  EXPECT_EQ(detail::share_in_place(buffers, pairs), (std::vector<int>{0, 1, 0, 1}));
}

class InPlaceTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(InPlaceTest);

TEST_P(InPlaceTest, chains_over_temporaries_give_the_values_of_a_run_op_by_op) {
  const auto values = [] {
    const Array x = cumsum(full({37, 19}, 0.125), 0);  // made by kernels, so that it lies in the arena
    const Array y = softmax(x * 0.5);                  // the product lies in place of x
    return (y + transpose(softmax(reshape(y, {19, 37})))).to_vector<float>();  // y is read in another order as well
  };
  const std::vector<float> together = values();
  const auto checked = make_engine(GetParam(), {.check_nan = true});
  const EngineScope use(*checked);
  EXPECT_EQ(together, values());
}

TEST_P(InPlaceTest, the_gradient_of_logits_takes_their_place) {
  // 192 rows of 7 classes: rows end inside vectors, and several work-items are at work.
  const Array label = array(std::vector<std::int32_t>(192, 3), {192}), x = normal({192, 7});
  eval({label, x});
  const auto gradient = [&] {
    const Array logits = cumsum(x, 1);  // made by a kernel, so that it lies in the arena
    return gradients(cross_entropy(logits, label, {.label_smoothing = 0.1f}), std::vector<Array>{x})[0]
        .to_vector<float>();
  };
  const std::vector<float> in_place = gradient();
  const Array kept = cumsum(x, 1);
  kept.eval();
  const Array beside = gradients(cross_entropy(kept, label, {.label_smoothing = 0.1f}), std::vector<Array>{kept})[0];
  EXPECT_EQ(in_place, flip(cumsum(flip(beside, {1}), 1), {1}).to_vector<float>());
}

TEST_P(InPlaceTest, a_chain_of_launches_needs_one_place_only) {
  const auto engine = make_engine(GetParam());
  const EngineScope use(*engine);
  const Array x = full({1024, 256}, 0.001);  // 1 MiB
  x.eval();
  const std::size_t before = engine->memory().live_bytes;
  sum(sin(cumsum(x, 0))).wait();
  EXPECT_LE(engine->memory().live_bytes - before, (std::size_t{1} << 20) + 65536);
}

}  // namespace
}  // namespace samebytes::testing
