// A recorded graph gives, over other inputs, what the code that built it would give.
#include "graph/recording.h"

#include <gtest/gtest.h>

#include <vector>

#include "samebytes/samebytes.h"

namespace samebytes::detail {
namespace {

class Recordings : public ::testing::Test {
 protected:
  Engine engine_;
  const EngineScope scope_{engine_};
  const NoGrad no_grad_;
};

// What `results` are made of, as if code that began before anything had built it.
std::optional<Recording> recorded(const std::vector<Array>& inputs, const std::vector<Array>& results) {
  return Recording::of({.next_node = 0, .host_reads = host_reads()}, inputs, results);
}

std::vector<float> built(const Recording& recording, const std::vector<Array>& inputs) {
  const auto results = recording.build(inputs);
  EXPECT_TRUE(results);
  return results ? contiguous((*results)[0]).to_vector<float>() : std::vector<float>{};
}

TEST_F(Recordings, views_several_results_and_scalars_are_built_again) {
  const Array w = array({1, 2, 3, 4, 5, 6}, {2, 3});
  w.wait();
  const auto code = [&](const Array& x, const Array& y) {
    const auto [values, places] = top_k(matmul(x, w), 2);
    return transpose(slice(values, 1, 0, 1)) * 0.5 + sum(transpose(y) + 1.0, {0}) + astype(sum(places), f32);
  };
  const auto input = [](float a) { return array({a, 2, 0, -1, 3, a}, {3, 2}); };
  const Array x = input(1), y = input(2);
  const std::vector<Array> results{code(x, y)};
  const auto recording = recorded({x, y}, results);
  ASSERT_TRUE(recording);
  for (const float a : {5.0F, -4.0F}) {
    const Array p = input(a), q = input(-a).wait();
    EXPECT_EQ(built(*recording, {p, q}), contiguous(code(p, q)).to_vector<float>());
  }
  EXPECT_EQ(contiguous(results[0]).to_vector<float>(), contiguous(code(x, y)).to_vector<float>());
}

TEST_F(Recordings, leaves_have_the_values_of_now) {
  const Array w = cell(array({1, 2}, {2}), "w");
  const Array x = array({10, 20}, {2});
  const std::vector<Array> results{x * w};
  const auto recording = recorded({x}, results);
  ASSERT_TRUE(recording);
  const Array other = array({1, 1}, {2});
  EXPECT_EQ(built(*recording, {other}), (std::vector<float>{1, 2}));
  assign(w, array({3, 4}, {2}));
  EXPECT_EQ(built(*recording, {other}), (std::vector<float>{3, 4}));
}

TEST_F(Recordings, an_input_that_is_a_result_or_lazy) {
  const Array x = zeros({2});
  const auto recording = recorded({x}, {x, x + 1.0});
  ASSERT_TRUE(recording);
  const Array lazy = array({1, 2}, {2}) * 2.0;
  const auto results = recording->build(std::vector<Array>{lazy});
  ASSERT_TRUE(results);
  EXPECT_EQ((*results)[1].to_vector<float>(), (std::vector<float>{3, 5}));
  EXPECT_EQ((*results)[0].to_vector<float>(), (std::vector<float>{2, 4}));
}

TEST_F(Recordings, what_cannot_be_built_again_is_refused) {
  const Array x = array({1, 2}, {2}), whole = array({1, 2, 3, 4}, {4});
  const Array part = slice(whole, 0, 1, 3);
  const Moment begin = Moment::now();
  const Array early = (x + 1.0).wait();
  EXPECT_FALSE(Recording::of(begin, std::vector<Array>{x}, std::vector<Array>{early * 2.0})) << "evaluated meanwhile";
  EXPECT_TRUE(Recording::of(Moment::now(), std::vector<Array>{x}, std::vector<Array>{x * early})) << "... or before";
  const float first = x.to_vector<float>()[0];
  EXPECT_FALSE(Recording::of(begin, std::vector<Array>{x}, std::vector<Array>{x * first})) << "looked at a value";
  EXPECT_FALSE(recorded({x, x}, {x + 1.0})) << "an input that comes twice";
  EXPECT_FALSE(recorded({part}, {part + 1.0})) << "a view";
  const auto recording = recorded({x}, {x + 1.0});
  ASSERT_TRUE(recording);
  EXPECT_FALSE(recording->build(std::vector<Array>{part}));
  EXPECT_EQ(built(*recording, {part + 0.0}), (std::vector<float>{3, 4}));
}

}  // namespace
}  // namespace samebytes::detail
